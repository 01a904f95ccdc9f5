"""Shapes: what `--json` prints, key by key, for docs/json.md and for the tests that hold it to that."""
