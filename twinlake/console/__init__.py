"""The console: pages in a browser, made on the server. No Spark, and no file of the lake."""
