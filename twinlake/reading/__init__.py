"""The analysts' door: views made from the release log, and the SQL server that serves them."""
