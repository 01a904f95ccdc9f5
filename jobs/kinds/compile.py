"""Turns a definition into what runs: row-local steps, partial, merge, the view's text, its fingerprint."""

from jobs.kinds.fingerprint import STATE_CODE, fingerprint
from jobs.kinds.row_local import analyse, output_columns, problems
from jobs.kinds.state import key_columns, merge, partial, source_columns, steps
from jobs.kinds.view import view_sql

__all__ = [
    "STATE_CODE", "analyse", "fingerprint", "key_columns", "merge", "output_columns", "partial", "problems",
    "source_columns", "steps", "view_sql",
]  # fmt: skip
