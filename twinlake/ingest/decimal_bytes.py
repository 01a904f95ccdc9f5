"""Decimals as the bytes that Avro sends: big-endian, in two's complement, of any length.

Spark reads no more than 38 digits, and one decimal beyond makes the whole body unreadable. Who asks the bytes
can say which field it was. SQL without NULL checks: a NULL value is none of these.
"""

from __future__ import annotations

_ONES = "translate({0}, '0123456789ABCDEF', 'FEDCBA9876543210')"


def is_empty(value: str) -> str:
    """No bytes at all are no number."""
    return f"length({value}) = 0"


def is_beyond(value: str, precision: int) -> str:
    """Whether the number has more digits than that."""
    text = f"hex({value})"
    greatest = 10**precision - 1
    return (
        f"CASE WHEN {text} >= '8' THEN {_at_least(_ONES.format(text), greatest)} "  # -1 - value, as positive
        f"ELSE {_at_least(text, greatest + 1)} END"
    )


def _at_least(text: str, number: int) -> str:
    """Two numbers in hexadecimal: the longer is the greater, of equal length the one that sorts later."""
    known, digits = f"{number:X}", f"trim(LEADING '0' FROM {text})"
    size = len(known)
    return f"(length({digits}) > {size} OR (length({digits}) = {size} AND {digits} >= '{known}'))"
