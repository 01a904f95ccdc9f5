"""The parts that run on one machine, one module per service."""
