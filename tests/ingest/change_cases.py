"""Envelopes that are changes, that are none, and pairs: the same list for the platform and its oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.envelopes import AT_MS, envelope, row

UNAVAILABLE = "__debezium_unavailable_value"
ANNA, ANNE, BEN = row(1, "Anna", "12.50"), row(1, "Anne", "12.50"), row(2, "Ben")
P7 = {"lsn": 7}


def change(op: str, at: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return envelope("postgresql", op, at, **more)


def lacking(value: dict[str, Any], *path: str) -> dict[str, Any]:
    """Without one of its members."""
    head, *rest = path
    if rest:
        return {**value, head: lacking(value[head], *rest)}
    return {name: one for name, one in value.items() if name != head}


SOUND = {
    "create": change("c", P7, after=ANNA),
    "update": change("u", P7, after=ANNA),
    "update with before": change("u", P7, before=ANNA, after=ANNE),
    "delete": change("d", P7, before=row(1, None)),
    "truncate": change("t", P7),
    "text that speaks of it": change("u", P7, after=row(1, f"no {UNAVAILABLE}")),
    "text that quotes it": change("u", P7, after=row(1, f'"{UNAVAILABLE}"')),
    "no transaction": lacking(change("c", P7, after=ANNA), "transaction"),
}
REFUSED = {
    "missing:op": lacking(change("c", P7, after=ANNA), "op"),
    "not_allowed:op": change("m", P7),
    "missing:source": lacking(change("c", P7, after=ANNA), "source"),
    "missing:source.ts_ms": lacking(change("c", P7, after=ANNA), "source", "ts_ms"),
    "missing:source.snapshot": lacking(change("c", P7, after=ANNA), "source", "snapshot"),
    "time_out_of_range:source.ts_ms": change("c", P7, after=ANNA, ts_ms=AT_MS * 1_000_000),
    "ahead_of_kafka:source.ts_ms": change("c", P7, after=ANNA, ts_ms=AT_MS + 10**9),
    "missing:source.lsn": change("r", {}, after=ANNA, snapshot="first"),
    "missing:after": change("u", P7, before=ANNA),
    "missing:before": change("d", P7),
    "unavailable_value:after": change("u", P7, after=row(1, UNAVAILABLE)),
    "unavailable_value:before": change("d", P7, before=row(1, UNAVAILABLE)),
    "wrong_type:after.amount": change("c", P7, after={**ANNA, "amount": 12.5}),
    "wrong_type:source.snapshot": change("r", P7, after=ANNA, snapshot=True),  # type: ignore[arg-type]
}
ALIKE = {
    "told again": (change("c", P7, after=ANNA), {**change("c", P7, after=ANNA), "ts_ms": 9}, True),
    "wrapped": (change("c", P7, after=ANNA), {"schema": {}, "payload": change("c", P7, after=ANNA)}, True),
    "elsewhere": (change("u", P7, after=ANNA), change("u", {"lsn": 8}, after=ANNA), False),
    "another transaction": (change("u", P7, after=ANNA), change("u", {**P7, "txId": 9}, after=ANNA), False),
    "read, not written": (change("r", P7, after=ANNA), change("c", P7, after=ANNA), False),
    "last of a snapshot": (
        change("r", P7, after=ANNA, snapshot="true"), change("r", P7, after=ANNA, snapshot="last"), False,
    ),
    "another row of a snapshot": (change("r", P7, after=ANNA), change("r", P7, after=BEN), False),
    "a row that has changed": (
        change("r", P7, after=ANNA, snapshot="incremental"),
        change("r", P7, after=ANNE, snapshot="incremental"), False,
    ),
    "what was NULL": (
        change("r", P7, after=row(1, None, "x")), change("r", P7, after=row(1, "x", None)), False,
    ),
    "a truncate": (change("t", P7), change("t", {"lsn": 8}), False),
}  # fmt: skip
