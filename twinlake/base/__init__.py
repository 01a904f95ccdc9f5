"""The ground: errors, text, files, times, waiting; nothing of Kafka, Spark or a lake."""
