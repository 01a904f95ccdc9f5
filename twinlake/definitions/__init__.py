"""Definitions as a whole: found in a project, analysed, named by a fingerprint."""
