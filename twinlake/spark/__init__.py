"""The edge to Spark: sessions, clusters, the JVM below, plans that are prepared once."""
