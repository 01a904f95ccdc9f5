"""The witness of ingest: a second decoder and one evaluator of contracts, over raw records, without Spark.

It knows records as Kafka brought them, contracts and schemas as JSON, and shares no code with what it
validates. `judge.py` needs no log and no file; `evaluate.py` asks it about a sample of a log.
"""
