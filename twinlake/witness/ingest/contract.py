"""Owns what a contract asks of a record beside its shape: rules, a key that can be read, lateness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from twinlake.witness.ingest import change_data
from twinlake.witness.ingest.decode_json import parsed, read
from twinlake.witness.ingest.record import Malformed, Rules, Value
from twinlake.witness.text import micros
from twinlake.witness.types import Type, struct


def broken(
    contract: Mapping[str, Any], fields: Mapping[str, Value], event_time: int | None, timestamp: int
) -> Iterator[str]:
    """The reason of each rule that the record breaks. NULL breaks no rule but that it must be there."""
    for rule in contract["rules"]:
        if _is_broken(rule, fields[rule["column"]]):
            yield f"{rule['code']}:{rule['column']}"
    if contract.get("change_data"):
        yield from change_data.broken(contract["change_data"], fields)
    ahead = length(contract, "future_tolerance")
    if ahead is not None and event_time is not None and event_time - timestamp > ahead:
        yield f"ahead_of_kafka:{contract['event_time']}"


def _is_broken(rule: Mapping[str, Any], value: Value) -> bool:
    code, asked = rule["code"], rule["value"]
    if code == "missing":
        return value is None
    if value is None:
        return False
    if code == "empty":
        return bool(value == "")
    if code == "not_allowed":
        return value not in tuple(asked)
    if code == "too_long":
        return bool(len(value) > asked)
    limit: Any = Decimal(asked)
    if isinstance(value, float):
        limit = float(limit)
        if value != value:  # Spark's NaN is greater than any number
            return bool(code == "above_maximum")
    return bool(value < limit if code == "below_minimum" else value > limit)


def is_bad_key(key: bytes | None, rules: Rules) -> bool:
    """Whether a key is there that cannot be read; any bytes can that nobody says are text."""
    written = rules.contract.get("key_format")
    if key is None or written not in ("string", "json"):
        return False
    try:
        text = key.decode()
        if written == "string":
            return False
        found = parsed(text)
    except (UnicodeDecodeError, Malformed):
        return True
    wrong: dict[str, None] = {}
    columns = ((one["name"], Type.parse(one["type"])) for one in rules.columns(key=True))
    read(found, struct(*columns), "", wrong)
    return found is None or bool(wrong)


def is_after(contract: Mapping[str, Any], name: str, event_time: int | None, timestamp: int) -> bool:
    """Whether Kafka had the record later than the contract's length of that name after its event time."""
    found = length(contract, name)
    return found is not None and event_time is not None and timestamp - event_time > found


def length(contract: Mapping[str, Any], name: str) -> int | None:
    """A duration of the contract, in microseconds; None where it says none."""
    return micros(contract[name]) if contract.get(name) else None
