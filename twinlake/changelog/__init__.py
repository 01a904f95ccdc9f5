"""The changes of a live table, sent to a compacted Kafka topic."""
