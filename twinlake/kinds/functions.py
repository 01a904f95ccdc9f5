"""Owns the names of Spark's own functions: which there are, and which of them no row-local step may call.

`spark_functions.txt` has a line for each, with the group in which Spark lists it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

NOT_LOCAL = "may not be in a row-local step: it must depend on one row only"
GROUPS = {
    "agg_funcs": "an aggregate",
    "window_funcs": "a window function",
    "generator_funcs": "a generator (only the table's `explode` may make rows)",
}
_REFLECTION = {"java_method", "reflect", "try_reflect"}
_WINDOWS = {"window", "session_window", "window_time"}
_OF_THE_MOMENT = {
    "now", "current_timestamp", "current_date", "curdate", "current_time", "localtimestamp",
    "current_timezone",
    "current_user", "session_user", "user", "current_catalog", "current_database", "current_schema",
    "input_file_name", "input_file_block_start", "input_file_block_length", "version",
}  # fmt: skip


@cache
def known() -> Mapping[str, str]:
    """By name in small letters, the group of each function."""
    lines = Path(__file__).with_name("spark_functions.txt").read_text().splitlines()
    return {name: group for name, _, group in (line.partition(" ") for line in lines)}


def foreign(name: str) -> str | None:
    """Why a function of this name may be called in no definition, wherever it stands, if so."""
    if name in _OF_THE_MOMENT:
        return f"it is not deterministic: {name}() depends on when or where it runs"
    if name in _REFLECTION:
        return f"{name}() calls into Java, which no definition may"
    return None


def not_local(name: str, group: str) -> str | None:
    """Why a function of this name, which is of this group, may be called in no row-local step, if so."""
    if name in _WINDOWS:
        return f"{name}() is not row-local; use the table's `window`"
    return f"{name}() is {GROUPS[group]}, which {NOT_LOCAL}" if group in GROUPS else None


def makes_names(name: str) -> bool:
    """Whether a call of it brings columns into a query whose names nobody has written."""
    return name in {*_WINDOWS, "grouping", "grouping_id"} or known().get(name) == "generator_funcs"
