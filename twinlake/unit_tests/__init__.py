"""Unit tests of definitions: records in, rows out, from `<table>.test.yaml` beside the definition."""
