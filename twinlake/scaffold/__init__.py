"""What `twinlake new` writes: contracts, schemas and first definitions."""
