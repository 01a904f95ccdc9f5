"""Measures, one module per family; `all.py` lists them."""
