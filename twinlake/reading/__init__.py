"""The analysts' endpoints: views made from the release log, and the SQL server that serves them."""
