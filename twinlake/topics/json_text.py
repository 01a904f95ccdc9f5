"""Owns the JSON that this project writes: exact decimals, moments in UTC, bytes as base64."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


def dumps(value: Any) -> str:
    """The value as JSON text on one line; TypeError for what JSON has no place for."""
    if value is None or isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return json.dumps(value.astimezone(UTC).isoformat().replace("+00:00", "Z"))
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {dumps(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(dumps, value)) + "]"
    raise TypeError(f"JSON has no place for {value!r}")
