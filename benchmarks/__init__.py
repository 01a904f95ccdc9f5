"""The benchmark: Twinlake against a plain loop over the same topic, each result checked by the oracle."""
