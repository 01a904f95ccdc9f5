"""Envelopes of Debezium as its documentation shows them, of a table of people in PostgreSQL and in MySQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twinlake.topics.contract import Contract
from twinlake.topics.contract_file import parse_contract

AT_MS = 1_769_860_800_000
"""2026-01-31T12:00:00Z."""
WINDOWS = {"lateAfter": "1 hour", "futureTolerance": "1 day", "uniqueWithin": "7 days"}
_LOGICAL = {"string": "string", "int": "integer", "bigint": "integer", "binary": "string"}
ROW = {"id": "int", "name": "string", "amount": "string"}
"""Of a row of people; `amount` is a decimal by decimal.handling.mode=string."""
SOURCES = {
    "postgresql": {
        "version": "string", "connector": "string", "name": "string", "ts_ms": "bigint",
        "snapshot": "string", "db": "string", "sequence": "string", "schema": "string",
        "table": "string", "txId": "bigint", "lsn": "bigint", "xmin": "bigint",
    },
    "mysql": {
        "version": "string", "connector": "string", "name": "string", "ts_ms": "bigint",
        "snapshot": "string", "db": "string", "sequence": "string", "table": "string",
        "server_id": "bigint", "gtid": "string", "file": "string", "pos": "bigint", "row": "int",
        "thread": "bigint", "query": "string",
    },
}  # fmt: skip
_MAY_LACK = {"sequence", "txId", "lsn", "xmin", "table", "gtid", "thread", "query", "amount", "city"}


def properties(
    database: str, row: Mapping[str, str] = ROW, source: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Those of a contract of such envelopes."""
    rows = [_object(name, row) for name in ("before", "after")]
    transaction = {"id": "string", "total_order": "bigint", "data_collection_order": "bigint"}
    return [
        *rows,
        {**_object("source", SOURCES[database] if source is None else source), "required": True},
        {**_object("transaction", transaction)},
        {**_plain("op", "string"), "required": True},
        _plain("ts_ms", "bigint"),
    ]


def document(
    name: str, database: str, promised: list[dict[str, Any]] | None = None, **custom: str | None
) -> dict[str, Any]:
    """Of a contract; a custom property of None is left out."""
    given = {**WINDOWS, "changeData": database, **custom}
    return {
        "apiVersion": "v3.2.0", "kind": "DataContract", "id": name, "name": name, "version": "1.0.0",
        "status": "active", "description": {"purpose": "A test."},
        "customProperties": [{"property": key, "value": one} for key, one in given.items() if one],
        "schema": [
            {
                "name": name, "physicalType": "topic", "logicalType": "object",
                "properties": properties(database) if promised is None else promised,
            }
        ],
    }  # fmt: skip


def contract(name: str, database: str, *, columns: Mapping[str, str] = ROW, **custom: str | None) -> Contract:
    promised = properties(database, columns)
    return parse_contract(
        document(name, database, promised, **custom), name=name, file=f"contracts/{name}.yaml"
    )


def row(id: int, name: str | None, amount: str | None = None) -> dict[str, Any]:
    return {"id": id, "name": name, "amount": amount}


def envelope(
    database: str, op: str, position: Mapping[str, Any], before: Any = None, after: Any = None,
    snapshot: str = "false", ts_ms: int = AT_MS,
) -> dict[str, Any]:  # fmt: skip
    """One record's value; `position` is where in the database's log the change was."""
    connector = {
        "version": "3.0.0.Final", "connector": database, "name": "server", "ts_ms": ts_ms,
        "snapshot": snapshot, "table": "people", "sequence": None,
    }  # fmt: skip
    beside = {
        "postgresql": {"db": "shop", "schema": "public", "txId": 555, "lsn": None, "xmin": None},
        "mysql": {
            "db": "shop", "server_id": 223344, "gtid": None, "file": None, "pos": 0, "row": 0,
            "thread": 7, "query": None,
        },
    }[database]  # fmt: skip
    source = {**connector, **beside, **position}
    return {
        "before": before, "after": after, "source": source, "transaction": None, "op": op,
        "ts_ms": ts_ms + 250,
    }  # fmt: skip


def as_json(value: Mapping[str, Any], *, wrapped: bool = False) -> bytes:
    """By Kafka Connect's converter to JSON; `wrapped` by schemas.enable, its default."""
    whole = {"schema": {"type": "struct", "optional": False, "name": "server.public.people.Envelope"}}
    return json.dumps({**whole, "payload": value} if wrapped else value).encode()


def avro(database: str, columns: Mapping[str, str] = ROW) -> dict[str, Any]:
    """The schema that Debezium registers for the table's topic, with what Connect leaves in it for itself."""
    namespace = "server.public.people"
    name = {"connect.version": 1, "connect.name": "io.debezium.data.Enum",
            "connect.parameters": {"allowed": "true,first,first_in_data_collection,last,false,incremental"},
            "connect.default": "false"}  # fmt: skip
    source = [_field(key, kind) for key, kind in SOURCES[database].items()]
    for one in source:
        if one["name"] == "snapshot":
            one |= {"type": [{"type": "string", **name}, "null"], "default": "false"}
    row = [_field(key, kind) for key, kind in columns.items()]
    value = {"type": "record", "name": "Value", "fields": row, "connect.name": f"{namespace}.Value"}
    block = {
        "type": "record", "name": "block", "namespace": "event",
        "fields": [
            {"name": "id", "type": "string"}, {"name": "total_order", "type": "long"},
            {"name": "data_collection_order", "type": "long"},
        ],
        "connect.version": 1, "connect.name": "event.block",
    }  # fmt: skip
    connector = f"io.debezium.connector.{database}"
    return {
        "type": "record", "name": "Envelope", "namespace": namespace,
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {
                "name": "source",
                "type": {
                    "type": "record", "name": "Source", "namespace": connector, "fields": source,
                    "connect.name": f"{connector}.Source",
                },
            },
            {"name": "transaction", "type": ["null", block], "default": None},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
        "connect.version": 2, "connect.name": f"{namespace}.Envelope",
    }  # fmt: skip


def _field(name: str, kind: str) -> dict[str, Any]:
    type_ = {"string": "string", "int": "int", "bigint": "long"}[kind]
    return (
        {"name": name, "type": ["null", type_], "default": None} if name in _MAY_LACK
        else {"name": name, "type": type_}
    )  # fmt: skip


def _plain(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "logicalType": _LOGICAL[kind], "physicalType": kind}


def _object(name: str, fields: Mapping[str, str]) -> dict[str, Any]:
    inside = [_plain(one, kind) for one, kind in fields.items()]
    return {"name": name, "logicalType": "object", "physicalType": "struct", "properties": inside}
