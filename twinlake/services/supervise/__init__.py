"""Keeps the parts running: processes, records, the supervisor, and what the command line asks of it."""
