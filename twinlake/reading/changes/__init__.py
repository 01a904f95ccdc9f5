"""Readers who follow a table: each difference between what it showed and what it shows now, once for all."""
