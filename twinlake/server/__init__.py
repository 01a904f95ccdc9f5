"""The lake server: the one process that writes the lake, its job API, and the client of that."""
