"""The allow-list, by family: what a node of a Spark expression is in DuckDB's SQL, and Spark's type of it."""
