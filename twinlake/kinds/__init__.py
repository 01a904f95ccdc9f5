"""The algebra: one module per kind of table, its windows, steps and measures, fingerprint and equality."""
