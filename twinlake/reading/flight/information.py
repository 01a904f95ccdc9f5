"""Information: what Flight SQL's clients ask of a server itself, its SQL and its types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from twinlake.base.version import VERSION

Value = str | bool | int | list[str]
_ANY_CASE, _NULLS_LOW, _ALL_OUTER_JOINS, _NO_TRANSACTIONS = 1, 1, 2, 0
_SQL: Mapping[int, Value] = {
    0: "Twinlake",
    1: VERSION,
    2: pa.__version__,
    3: True,  # only reads
    4: True,  # takes SQL
    5: False,  # no Substrait
    8: _NO_TRANSACTIONS,
    9: True,  # cancels
    100: 0,  # a prepared statement is for ever
    101: 0,
    500: False,
    501: False,
    502: False,
    503: _ANY_CASE,
    504: "`",
    505: _ANY_CASE,
    506: True,
    507: _NULLS_LOW,
    508: list[str](),
    513: "\\",
    514: "",
    515: True,
    516: True,
    518: True,
    519: False,
    520: True,
    521: True,
    523: True,
    524: False,
    528: _ALL_OUTER_JOINS,
    529: "schema",
    530: "",
    531: "catalog",
    532: True,
    541: 0,  # SELECT ... FOR UPDATE
    561: False,  # transactions
    572: False,
    573: False,
    574: False,
}
"""By its number in enum SqlInfo of FlightSql.proto."""
_UNION = pa.dense_union([
    pa.field("string_value", pa.utf8()), pa.field("bool_value", pa.bool_()),
    pa.field("bigint_value", pa.int64()), pa.field("int32_bitmask", pa.int32()),
    pa.field("string_list", pa.list_(pa.utf8())),
    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
])  # fmt: skip
SQL_INFO = pa.schema([pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", _UNION)])
_PLACE = {str: 0, bool: 1, int: 3, list: 4}


def sql_info(wanted: Collection[int]) -> pa.Table:
    """What is known of these, of everything where none is named."""
    known = {number: value for number, value in _SQL.items() if not wanted or number in wanted}
    of_each: list[list[Value]] = [[] for _ in _UNION]
    places, offsets = [], []
    for value in known.values():
        place = _PLACE[type(value)]
        places.append(place)
        offsets.append(len(of_each[place]))
        of_each[place].append(value)
    children = [pa.array(values, field.type) for values, field in zip(of_each, _UNION, strict=True)]
    union = pa.UnionArray.from_dense(
        pa.array(places, pa.int8()), pa.array(offsets, pa.int32()), children, [field.name for field in _UNION]
    )
    return pa.table([pa.array(known, pa.uint32()), union.cast(_UNION)], schema=SQL_INFO)


def _field(name: str, type_: pa.DataType, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, type_, nullable=nullable)


TYPE_INFO = pa.schema([
    _field("type_name", pa.utf8(), nullable=False), _field("data_type", pa.int32(), nullable=False),
    _field("column_size", pa.int32()), _field("literal_prefix", pa.utf8()),
    _field("literal_suffix", pa.utf8()),
    _field("create_params", pa.list_(pa.field("item", pa.utf8(), nullable=False))),
    _field("nullable", pa.int32(), nullable=False), _field("case_sensitive", pa.bool_(), nullable=False),
    _field("searchable", pa.int32(), nullable=False), _field("unsigned_attribute", pa.bool_()),
    _field("fixed_prec_scale", pa.bool_(), nullable=False), _field("auto_increment", pa.bool_()),
    _field("local_type_name", pa.utf8()), _field("minimum_scale", pa.int32()),
    _field("maximum_scale", pa.int32()), _field("sql_data_type", pa.int32(), nullable=False),
    _field("datetime_subcode", pa.int32()), _field("num_prec_radix", pa.int32()),
    _field("interval_precision", pa.int32()),
])  # fmt: skip
_QUOTE = ("'", "'")
_TYPES: tuple[tuple[str, int, int | None, tuple[str, str] | None, int | None], ...] = (
    ("BOOLEAN", -7, None, None, None), ("TINYINT", -6, 3, None, 10), ("BIGINT", -5, 19, None, 10),
    ("BINARY", -3, None, ("X'", "'"), None), ("DECIMAL", 3, 38, None, 10), ("INT", 4, 10, None, 10),
    ("SMALLINT", 5, 5, None, 10), ("FLOAT", 7, 24, None, 2), ("DOUBLE", 8, 53, None, 2),
    ("STRING", 12, None, _QUOTE, None), ("DATE", 91, 10, ("DATE'", "'"), None),
    ("TIMESTAMP", 93, 29, ("TIMESTAMP'", "'"), None),
    ("TIMESTAMP_NTZ", 93, 29, ("TIMESTAMP_NTZ'", "'"), None),
)  # fmt: skip
"""Name, number as JDBC has it, size, what stands around a literal, radix; in the order that is asked for."""
_NULLABLE, _SEARCHABLE = 1, 3
_DATETIME, _SUBCODES = 9, {91: 1, 93: 3}


def type_info(wanted: int | None) -> pa.Table:
    """Spark's types; those of one number of JDBC's, or all of them."""
    rows: list[dict[str, Any]] = [
        {
            "type_name": name, "data_type": number, "column_size": size,
            "literal_prefix": around and around[0], "literal_suffix": around and around[1],
            "nullable": _NULLABLE, "case_sensitive": name == "STRING", "searchable": _SEARCHABLE,
            "unsigned_attribute": False if radix else None, "fixed_prec_scale": False,
            "auto_increment": False if radix else None, "local_type_name": name,
            "minimum_scale": 0 if name == "DECIMAL" else None,
            "maximum_scale": 38 if name == "DECIMAL" else None,
            "create_params": ["precision", "scale"] if name == "DECIMAL" else None,
            "sql_data_type": _DATETIME if number in _SUBCODES else number,
            "datetime_subcode": _SUBCODES.get(number), "num_prec_radix": radix,
        }
        for name, number, size, around, radix in _TYPES
        if wanted is None or wanted == number
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, TYPE_INFO)
