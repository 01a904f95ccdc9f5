"""Metrics in Prometheus' form: what there is to measure, how it is served, and what every process has."""
