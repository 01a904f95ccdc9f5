"""The independent oracle: recomputes every table from the topic and compares it with what readers are shown.

It shares no code with the platform: confluent-kafka reads, fastavro decodes, polars evaluates. Whoever
changes what a verdict or a table means has to change it here too, in other words.
"""
