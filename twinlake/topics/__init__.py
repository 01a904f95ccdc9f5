"""A topic as this project knows it: schema, contract, verdicts, wire format, Kafka, registry, producing."""
