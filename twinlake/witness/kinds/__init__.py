"""Kinds of tables as their documented meaning says, one module per kind; `all.py` lists them."""
