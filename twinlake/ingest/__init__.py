"""Kafka -> log: every record once, with its verdict."""
