"""The first pass over a micro-batch: what each record says of itself, as Spark SQL.

The driver then decides duplicates and gives every record a code (`decide`); the second pass writes the log's
columns from the codes (`log_rows`). Whatever is decided is decided once: the second pass only looks it up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.ingest.decode_avro import SEPARATOR
from twinlake.ingest.decoding import decoding, event_columns, of_values
from twinlake.ingest.unreadable import Unreadable
from twinlake.ingest.writer_schema import Writer
from twinlake.kinds.grid import micros
from twinlake.lake.log.log import EVENT
from twinlake.topics import change_data, record_key, verdict
from twinlake.topics.contract import Contract
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    import pyarrow as pa

LATE, DISCARD, NO_ID, NO_TIME = 1, 2, 4, 8  # bits of the column `flags`
_SENT = "coalesce(length(key), 0) + coalesce(length(value), 0)"


def selections(
    topic: Topic,
    writers: Sequence[Writer],
    end_marker: bytes,
    event: Mapping[str, str] | None = None,
    unreadable: Sequence[Unreadable] = (),
    closely: bool = False,
) -> tuple[tuple[str, ...], ...]:
    """Select expressions over Kafka's records, to apply one list after the other.

    The last one yields partition, offset, micros (Kafka's), type (of the timestamp), event_micros, high and
    low (of the id's hash), flags, reasons (text, NULL where nothing is wrong) and schema_id. A well-formed
    schema id that is none of these writers', and not `unreadable`, has the reason NO_SCHEMA_YET.
    `end_marker` is eight random bytes that no producer can know.

    `closely` a decimal of more than 38 digits is distinguished from a malformed body, or in JSON from what is
    no number, which takes longer.

    With `event`, the fields of the log's `event` and their types, there are besides key, value, headers,
    timestamp and event, as the log stores them; without it sent_bytes, the length of key and value.
    """
    headers = () if event is None else ("headers",)
    kept = ("partition", "offset", "timestamp", "timestampType", "key", *headers)
    how = decoding(topic, writers, unreadable, end_marker, closely)
    headed = (*kept, "value", f"{how.schema_id} AS schema_id")
    decoded = [("*", *columns) for columns in how.columns]
    contract = topic.contract
    read = (
        *kept,
        "value",
        "schema_id",
        f"{how.undecodable} AS undecodable",
        *(f"{how.fields[name]} AS {_read(name)}" for name in _needed(contract)),
        f"{how.event_micros} AS event_micros",
    )
    judged = (
        "partition",
        "offset",
        "unix_micros(timestamp) AS micros",
        "timestampType AS type",
        "coalesce(event_micros, unix_micros(timestamp)) AS event_micros",
        f"{_hash(contract, 0)} AS high",
        f"{_hash(contract, 1)} AS low",
        f"{_flags(contract)} AS flags",
        f"coalesce(undecodable, nullif({_broken(contract)}, '')) AS reasons",
        "coalesce(schema_id, -1) AS schema_id",
    )
    if event is None:
        return headed, *decoded, read, (*judged, f"{_SENT} AS sent_bytes")
    columns, event_sql = event_columns(topic, writers, event)
    written = ("*", "undecodable IS NULL AS decodable")
    whole = (*judged, "key", "value", *headers, "timestamp", f"{event_sql} AS {EVENT}")
    return headed, *decoded, read, written, ("*", *columns), whole


def bytes_in_memory(looked: pa.Table) -> float:
    """About how many bytes a record takes, key, value, event and all, by a look without the event."""
    import pyarrow.compute as pc

    return 200 + 4 * float(pc.mean(looked.column("sent_bytes")).as_py())


def identity(contract: Contract, column: Callable[[str], str], key: str) -> str | None:
    """SQL of what identifies a record, None where nothing does; by the SQL of its fields and of its key."""
    if contract.change_data:
        return change_data.identity(contract, column, key)
    return column(contract.unique) if contract.unique else None


def id_hash(column: str, half: int) -> str:
    """64 of the 128 bits that stand for an id."""
    return f"xxhash64({half}, {column})"


def _needed(contract: Contract) -> list[str]:
    names = [rule.column for rule in contract.rules]
    if contract.unique:
        names.append(contract.unique)
    if contract.change_data:
        names += change_data.FIELDS
    return list(dict.fromkeys(names))


def _read(name: str) -> str:
    return quote.name(f"read_{name}")


def _hash(contract: Contract, half: int) -> str:
    known = identity(contract, _read, "key")
    return id_hash(known, half) if known else "0L"


def _flags(contract: Contract) -> str:
    late = "unix_micros(timestamp) - event_micros"
    bits = []
    if contract.late_after:
        bits.append(f"CASE WHEN {late} > {micros(contract.late_after)} THEN {LATE} ELSE 0 END")
    if contract.discard_after:
        bits.append(f"CASE WHEN {late} > {micros(contract.discard_after)} THEN {DISCARD} ELSE 0 END")
    known = identity(contract, _read, "key")
    without_id = f"{known} IS NULL" if known else "true"
    bits.append(of_values(contract, f"CASE WHEN {without_id} THEN {NO_ID} ELSE 0 END", str(NO_ID | NO_TIME)))
    return " + ".join(bits)


def _broken(contract: Contract) -> str:
    """All rules that the record breaks, as text; '' where none."""
    broken = [
        f"CASE WHEN {rule.broken_sql(_read(rule.column))} THEN {quote.string(rule.reason)} END"
        for rule in contract.rules
    ]
    if contract.change_data:
        for why, wrong in change_data.broken(contract, _read).items():
            broken.append(f"CASE WHEN {wrong} THEN {quote.string(why)} END")
    if contract.future_tolerance and contract.event_time:
        ahead = f"event_micros - unix_micros(timestamp) > {micros(contract.future_tolerance)}"
        code = verdict.reason(verdict.AHEAD_OF_KAFKA, contract.event_time)
        broken.append(f"CASE WHEN {ahead} THEN {quote.string(code)} END")
    rules = f"concat_ws('{SEPARATOR}', {', '.join(broken)})" if broken else "''"
    bad_key = record_key.bad(contract)
    if bad_key is None:
        return of_values(contract, rules, "''")
    rules = of_values(contract, f"nullif({rules}, '')")
    return f"concat_ws('{SEPARATOR}', CASE WHEN {bad_key} THEN '{verdict.BAD_KEY}' END, {rules})"
