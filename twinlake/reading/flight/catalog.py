"""Catalog: Flight SQL's questions about what there is, answered by the rights of who asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from twinlake.reading.flight import framing, information

CATALOG = "spark_catalog"
"""Of all schemas; clients list nothing where there is no catalog."""
SQLALCHEMY = "sqlalchemy"
"""For whom `sqlalchemy-adbc` lists: it knows `table` and `view`, in small letters, and reflects tables alone
where nothing else is said. So a table is one for it."""
_NAME, _TYPE = pa.utf8(), "VIEW"
_PLACE = [pa.field("catalog_name", _NAME), pa.field("db_schema_name", _NAME)]


def _needed(*names: str, type_: pa.DataType = _NAME) -> list[pa.Field]:
    return [pa.field(name, type_, nullable=False) for name in names]


_CATALOGS = pa.schema(_needed("catalog_name"))
_SCHEMAS = pa.schema([_PLACE[0], *_needed("db_schema_name")])
_TABLES = pa.schema([*_PLACE, *_needed("table_name", "table_type")])
_TABLES_WITH_COLUMNS = pa.schema([*_TABLES, *_needed("table_schema", type_=pa.binary())])
_TABLE_TYPES = pa.schema(_needed("table_type"))
_PRIMARY_KEYS = pa.schema([
    *_PLACE, *_needed("table_name", "column_name"), pa.field("key_name", _NAME),
    *_needed("key_sequence", type_=pa.int32()),
])  # fmt: skip
_FOREIGN_KEYS = pa.schema([
    pa.field("pk_catalog_name", _NAME), pa.field("pk_db_schema_name", _NAME),
    *_needed("pk_table_name", "pk_column_name"),
    pa.field("fk_catalog_name", _NAME), pa.field("fk_db_schema_name", _NAME),
    *_needed("fk_table_name", "fk_column_name"), *_needed("key_sequence", type_=pa.int32()),
    pa.field("fk_key_name", _NAME), pa.field("pk_key_name", _NAME),
    *_needed("update_rule", "delete_rule", type_=pa.uint8()),
])  # fmt: skip


class Listed(Protocol):
    """What is asked of the reader."""

    def schemas(self, pattern: str | None, user: str = "") -> list[str]:
        """Those that fit a pattern of SQL's."""

    def tables(
        self, schema_pattern: str | None, table_pattern: str | None, user: str = ""
    ) -> list[tuple[str, str, pa.Schema]]:
        """Schema, name and columns of those that fit."""

    def is_table(self, schema: str, name: str) -> bool:
        """Whether a view is that of a table of a release."""


def columns(kind: str, asked: Any) -> pa.Schema | None:
    """Those of the answer to this command; None for one of another sort."""
    if kind == "CommandGetTables" and asked.include_schema:
        return _TABLES_WITH_COLUMNS
    return _COLUMNS.get(kind)


def answer(listed: Listed, user: str, kind: str, asked: Any, for_whom: str = "") -> pa.Table:
    """The rows that `columns` are of."""
    make = _ANSWERS.get(kind)
    if make is None:
        return columns(kind, asked).empty_table()  # type: ignore[union-attr]
    found = make(listed, user, asked)
    return _of_sqlalchemys_types(listed, found) if (kind, for_whom) == _RENAMED else found


_RENAMED = ("CommandGetTables", SQLALCHEMY)


def _of_sqlalchemys_types(listed: Listed, found: pa.Table) -> pa.Table:
    names = zip(*(found.column(name).to_pylist() for name in ("db_schema_name", "table_name")), strict=True)
    types = pa.array(["table" if listed.is_table(*name) else "view" for name in names], _NAME)
    at = found.schema.get_field_index("table_type")
    return found.set_column(at, found.schema.field(at), types)


def _is_ours(asked: Any) -> bool:
    return not asked.HasField("catalog") or asked.catalog == CATALOG


def _given(asked: Any, field: str) -> str | None:
    return getattr(asked, field) if asked.HasField(field) else None


def _catalogs(listed: Listed, user: str, asked: Any) -> pa.Table:
    return pa.table([[CATALOG]], schema=_CATALOGS)


def _schemas(listed: Listed, user: str, asked: Any) -> pa.Table:
    found = listed.schemas(_given(asked, "db_schema_filter_pattern"), user) if _is_ours(asked) else []
    return pa.table([[CATALOG] * len(found), found], schema=_SCHEMAS)


def _tables(listed: Listed, user: str, asked: Any) -> pa.Table:
    is_wanted = not asked.table_types or _TYPE in asked.table_types
    found = []
    if is_wanted and _is_ours(asked):
        schema, table = (_given(asked, f"{of}_filter_pattern") for of in ("db_schema", "table_name"))
        found = listed.tables(schema, table, user)
    rows = [
        {
            "catalog_name": CATALOG, "db_schema_name": schema, "table_name": name, "table_type": _TYPE,
            "table_schema": framing.schema_bytes(_described(schema, name, shown)),
        }
        for schema, name, shown in found
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, _TABLES_WITH_COLUMNS if asked.include_schema else _TABLES)


def _described(schema: str, name: str, shown: pa.Schema) -> pa.Schema:
    """What drivers show of columns: for ADBC's the name of the type, for others also the comment."""
    fields = []
    for field in shown:
        known = field.metadata or {}
        of = {"CATALOG_NAME": CATALOG, "DB_SCHEMA_NAME": schema, "TABLE_NAME": name,
              "TYPE_NAME": known.get(b"type", b""), "REMARKS": known.get(b"comment", b""),
              "IS_READ_ONLY": "1", "IS_SEARCHABLE": "1", "IS_AUTO_INCREMENT": "0"}  # fmt: skip
        if pa.types.is_decimal(field.type):
            of |= {"PRECISION": str(field.type.precision), "SCALE": str(field.type.scale)}
        fields.append(field.with_metadata({f"ARROW:FLIGHT:SQL:{key}": value for key, value in of.items()}))
    return pa.schema(fields)


def _table_types(listed: Listed, user: str, asked: Any) -> pa.Table:
    return pa.table([[_TYPE]], schema=_TABLE_TYPES)


def _sql_info(listed: Listed, user: str, asked: Any) -> pa.Table:
    return information.sql_info(asked.info)


def _type_info(listed: Listed, user: str, asked: Any) -> pa.Table:
    return information.type_info(asked.data_type if asked.HasField("data_type") else None)


_COLUMNS = {
    "CommandGetCatalogs": _CATALOGS, "CommandGetDbSchemas": _SCHEMAS, "CommandGetTables": _TABLES,
    "CommandGetTableTypes": _TABLE_TYPES, "CommandGetSqlInfo": information.SQL_INFO,
    "CommandGetXdbcTypeInfo": information.TYPE_INFO, "CommandGetPrimaryKeys": _PRIMARY_KEYS,
    "CommandGetExportedKeys": _FOREIGN_KEYS, "CommandGetImportedKeys": _FOREIGN_KEYS,
    "CommandGetCrossReference": _FOREIGN_KEYS,
}  # fmt: skip
KINDS = tuple(_COLUMNS)
"""The commands that are answered here."""
_ANSWERS: dict[str, Callable[[Listed, str, Any], pa.Table]] = {
    "CommandGetCatalogs": _catalogs, "CommandGetDbSchemas": _schemas, "CommandGetTables": _tables,
    "CommandGetTableTypes": _table_types, "CommandGetSqlInfo": _sql_info,
    "CommandGetXdbcTypeInfo": _type_info,
}  # fmt: skip
"""Of keys there are none."""
