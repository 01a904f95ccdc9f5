"""Decides each record's verdict and reasons as the contract of `orders` is published, in plain Python."""

from __future__ import annotations

import io
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastavro import parse_schema, schemaless_reader

from tests.oracle.topic import Records

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
FIELDS = ("event_id", "order_id", "customer", "region", "status", "amount", "ordered_at")
TEXTS = ("event_id", "customer", "region", "status")
YEAR_1_MS = -62_135_596_800_000
YEAR_9999_MS = 253_402_300_799_999
DECODE_ERRORS = (EOFError, IndexError, ValueError, TypeError, OverflowError, MemoryError, StopIteration)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The contract of `orders`, as its file says it."""

    statuses: frozenset[str] = frozenset({"pending", "paid", "cancelled"})
    discard_after_ms: int = 21 * DAY_MS
    late_after_ms: int = 3 * HOUR_MS
    ahead_ms: int = 5 * MINUTE_MS
    unique_within_ms: int = HOUR_MS
    amount_digits: int = 12


RULES = Rules()


@dataclass(kw_only=True)
class Judged:
    """Valid events as columns (row i of each belongs together), the rest with verdict and reasons."""

    rows: list[int] = field(default_factory=list)  # index into the records
    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in FIELDS})
    refused: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    late: int = 0

    def verdicts(self) -> dict[str, int]:
        counts = {"valid": len(self.rows), "invalid": 0, "duplicate": 0, "too_late": 0}
        for verdict, _ in self.refused.values():
            counts[verdict] += 1
        return counts


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Where schemas are, and what is shown there."""

    url: str
    login: tuple[str, str] | None = None
    ca_file: str | None = None

    @classmethod
    def of(cls, services: Mapping[str, Any]) -> Registry:
        """What services.json says."""
        told = services.get("registry_access", {})
        password = told.get("password", "")
        if file := told.get("password_file"):
            password = Path(file).read_text().rstrip("\r\n")
        login = (told["username"], password) if told.get("username") else None
        return cls(url=services["registry_url"], login=login, ca_file=told.get("ca_file"))

    def client(self) -> httpx.Client:
        trust: Any = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True
        return httpx.Client(
            base_url=self.url.rstrip("/"), auth=self.login, verify=trust, timeout=20, trust_env=False
        )


def writer_schemas(at: Registry | str, subject: str) -> dict[int, dict[str, Any]]:
    """Every schema registered under the subject, by the id that record headers carry."""
    with (Registry(url=at) if isinstance(at, str) else at).client() as registry:
        versions = registry.get(f"/subjects/{subject}/versions").raise_for_status().json()
        found = [
            registry.get(f"/subjects/{subject}/versions/{version}").raise_for_status().json()
            for version in versions
        ]
    return {one["id"]: json.loads(one["schema"]) for one in found}


def judge(records: Records, schemas: dict[int, dict[str, Any]]) -> Judged:
    """A verdict for every record. Across partitions, one id's records are taken in order of timestamp."""
    readers = {schema_id: parse_schema(physical(schema)) for schema_id, schema in schemas.items()}
    judged = Judged()
    sound: list[tuple[int, tuple[Any, ...]]] = []
    for row, value in enumerate(records.values):
        event, reasons = decode(value, readers)
        if event is None:
            judged.refused[row] = ("invalid", reasons)
            continue
        verdict, reasons = check_event(event, records.timestamps_ms[row])
        if verdict == "valid":
            sound.append((row, event))
        else:
            judged.refused[row] = (verdict, reasons)
    repeated = repeats(sound, records)
    columns = list(judged.columns.values())
    for row, event in sound:
        if row in repeated:
            judged.refused[row] = ("duplicate", ["already_seen"])
            continue
        judged.rows.append(row)
        judged.late += records.timestamps_ms[row] - event[6] > RULES.late_after_ms
        for column, part in zip(columns, event, strict=True):
            column.append(part)
    return judged


def physical(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without logical types and with strings as bytes: same encoding, nothing interpreted."""

    def plain(kind: Any) -> Any:
        if isinstance(kind, dict):
            kind = kind["type"]
        if isinstance(kind, list):
            return [plain(one) for one in kind]
        return "bytes" if kind == "string" else kind

    return {
        "type": "record",
        "name": schema["name"],
        "fields": [{"name": one["name"], "type": plain(one["type"])} for one in schema["fields"]],
    }


def decode(value: bytes | None, readers: dict[int, Any]) -> tuple[tuple[Any, ...] | None, list[str]]:
    """The event's fields (amount in cents, time in milliseconds), or the reasons why there is no event."""
    if value is None:
        return None, ["null_value"]
    if len(value) < 5 or value[0] != 0:
        return None, ["bad_header"]
    reader = readers.get(int.from_bytes(value[1:5], "big"))
    if reader is None:
        return None, ["unknown_schema"]
    body = io.BytesIO(value[5:])
    try:
        raw: Any = schemaless_reader(body, reader, None)
    except DECODE_ERRORS:
        return None, ["malformed_body"]
    if body.tell() != len(value) - 5 or raw["amount"] == b"":  # no bytes are no number
        return None, ["malformed_body"]
    reasons: list[str] = []
    for name in TEXTS:
        try:
            raw[name] = raw[name].decode()
        except UnicodeDecodeError:
            reasons.append(f"invalid_utf8:{name}")
    cents = int.from_bytes(raw["amount"], "big", signed=True)
    if abs(cents) >= 10**RULES.amount_digits:
        reasons.append("decimal_out_of_range:amount")
    if not YEAR_1_MS <= raw["ordered_at"] <= YEAR_9999_MS:
        reasons.append("time_out_of_range:ordered_at")
    if reasons:
        return None, reasons
    raw["amount"] = cents
    return tuple(raw[name] for name in FIELDS), []


def check_event(event: tuple[Any, ...], timestamp_ms: int, rules: Rules = RULES) -> tuple[str, list[str]]:
    """The verdict by the rules alone, and its reasons: whether its id was seen is another question."""
    _, _, customer, region, status, cents, ordered_at = event
    broken = []
    if cents < 0:
        broken.append("below_minimum:amount")
    if status not in rules.statuses:
        broken.append("not_allowed:status")
    if region == "":
        broken.append("empty:region")
    if customer == "":
        broken.append("empty:customer")
    if ordered_at - timestamp_ms > rules.ahead_ms:
        broken.append("ahead_of_kafka:ordered_at")
    if broken:
        return "invalid", broken
    if timestamp_ms - ordered_at > rules.discard_after_ms:
        return "too_late", ["too_late"]
    return "valid", []


def repeats(sound: list[tuple[int, tuple[Any, ...]]], records: Records) -> set[int]:
    """Rows whose id was on a valid record before them, at most the horizon earlier."""
    first: dict[str, int] = {}
    again: dict[str, list[int]] = {}
    for row, event in sound:
        before = first.setdefault(event[0], row)
        if before != row:
            again.setdefault(event[0], [before]).append(row)
    repeated: set[int] = set()
    for rows in again.values():
        if len({records.partitions[row] for row in rows}) == 1:
            rows.sort(key=lambda row: records.offsets[row])
        else:
            stamps, partitions, offsets = records.timestamps_ms, records.partitions, records.offsets
            rows.sort(key=lambda row: (stamps[row], partitions[row], offsets[row]))
        seen = records.timestamps_ms[rows[0]]
        for row in rows[1:]:
            if records.timestamps_ms[row] - seen <= RULES.unique_within_ms:
                repeated.add(row)
            else:
                seen = records.timestamps_ms[row]
    return repeated
