"""The log of a topic: its batches, clocks, fields, and what is in quarantine."""
