"""Row: how one row of a result is written as JSON, for every command, report and API alike.

Decimals are strings (no digit is lost), times RFC 3339 in UTC, bytes base64, NaN and infinities strings.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any


def to_json(value: Any) -> Any:
    """The JSON form of one value or of a whole row; a time without a zone is taken as UTC."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    return str(value)


def _moment(value: datetime) -> str:
    utc = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    text = utc.replace(tzinfo=None).isoformat(timespec="microseconds" if utc.microsecond % 1000 else "auto")
    if utc.microsecond and not utc.microsecond % 1000:
        text = utc.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z"
