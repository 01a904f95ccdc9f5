"""Turns a definition into what runs: row-local steps, partial, merge, the view's text, its fingerprint."""

from jobs.compile.meaning import STATE_CODE, fingerprint
from jobs.compile.refusal import analyse, output_columns, problems
from jobs.compile.state import key_columns, merge, partial, source_columns, steps
from jobs.compile.view import view_sql

__all__ = [
    "STATE_CODE", "analyse", "fingerprint", "key_columns", "merge", "output_columns", "partial", "problems",
    "source_columns", "steps", "view_sql",
]  # fmt: skip
