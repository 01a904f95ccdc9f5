"""Local services without Docker: jars, Java, the supervisor and the parts it keeps running."""
