"""The difference between two relations, and between two moments of a table: for all who compare."""
