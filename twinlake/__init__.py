"""Twinlake for Python: tables as readers see them, now or as they were, in Arrow or in Spark.

    import twinlake

    sales = twinlake.read("sales_per_region", as_of="release:3", where="region = 'north'")
    twinlake.told(sales)  # the release and position that it is, and what was computed from the log

A name is imported when it is asked for: whoever needs one module of the library loads no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinlake.base.errors import TwinlakeError
    from twinlake.remote import read, told

__all__ = ["TwinlakeError", "read", "told"]
_WHERE = {"TwinlakeError": "twinlake.base.errors", "read": "twinlake.remote", "told": "twinlake.remote"}


def __getattr__(name: str) -> Any:
    """The public name, from where it is defined (PEP 562)."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
