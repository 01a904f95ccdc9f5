"""The changes of a live table, posted to somebody's address."""
