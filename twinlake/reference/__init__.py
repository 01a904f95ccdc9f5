"""The reference pages of docs/ that are made from the code."""
