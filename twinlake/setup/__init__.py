"""What `make` needs before anything runs: Java, jars, the virtual environment."""
