"""How one row of a result is written as JSON, for every command, report and API alike.

Decimals are strings (no digit is lost), times RFC 3339 in UTC, bytes hex digits, NaN and infinities strings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from twinlake.base.times import format_moment


def to_json(value: Any) -> Any:
    """The JSON form of one value or of a whole row.

    A time without a zone is in the process's own one: that is how PySpark collects timestamps.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return format_moment(value if value.tzinfo else value.astimezone())
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if hasattr(value, "asDict"):  # a Row of PySpark, which is a tuple too
        return to_json(value.asDict())
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    return str(value)


def replaced(value: Any, instead: Callable[[str, Any], str | None]) -> Any:
    """An answer with what `instead` gives for a member's name and value in its place, however deep it is; a
    member for which it gives None stays."""
    if isinstance(value, Mapping):
        return {
            name: replaced(one, instead) if (text := instead(name, one)) is None else text
            for name, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [replaced(one, instead) for one in value]
    return value
