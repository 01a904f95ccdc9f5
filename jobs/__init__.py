"""This project's jobs: what both layers run, one file per table in `tables/`."""
