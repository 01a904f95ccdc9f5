"""What Twinlake does. Imports point down: the plain files here <- topics <- kinds <- lake <- {ingest, speed,
batch, reading} <- releases <- server <- commands; `tables` are the definitions."""
