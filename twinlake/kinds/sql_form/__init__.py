"""Definitions as one SQL statement: `reading.py` makes the definition of it, `writing.py` goes back."""
