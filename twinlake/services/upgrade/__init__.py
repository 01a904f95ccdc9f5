"""Upgrades of a data directory: how far one is, what it keeps of before, its steps and the way back."""
