"""JSON that has a contract's shape, and JSON that has not: the same list for the platform and its oracle."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

AT = b'"at": "2026-01-31T12:00:00Z"'


def _one(name: str, logical: str, physical: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "logicalType": logical, "physicalType": physical, **more}


PROPERTIES: list[dict[str, Any]] = [
    _one("at", "timestamp", "timestamp", required=True),
    _one("text", "string", "string"),
    _one("small", "integer", "int"),
    _one("number", "integer", "bigint"),
    _one("price", "number", "decimal(12,2)"),
    _one("share", "number", "decimal(2,2)"),
    _one("ratio", "number", "double"),
    _one("flag", "boolean", "boolean"),
    _one("day", "date", "date"),
    _one("raw", "string", "binary"),
    _one("address", "object", "struct", properties=[
        _one("city", "string", "string"), _one("zip", "integer", "int"),
    ]),
    _one("items", "array", "array", items={
        "logicalType": "object", "physicalType": "struct",
        "properties": [_one("price", "number", "decimal(9,2)")],
    }),
    _one("scores", "map", "map", map={
        "key": {"logicalType": "string", "physicalType": "string"},
        "value": {"logicalType": "integer", "physicalType": "bigint"},
    }),
]  # fmt: skip


def _with(text: bytes) -> bytes:
    return b"{" + AT + b", " + text + b"}"


SOUND: list[tuple[bytes, dict[str, Any]]] = [
    (b"{" + AT + b"}", {"at": datetime(2026, 1, 31, 12, tzinfo=UTC), "text": None, "items": None}),
    (b" \n\t{" + AT + b"} \r\n", {"text": None}),
    (_with(b'"text": "a\\u0000\\ud83d\\ude00"'), {"text": "a\0\U0001f600"}),
    (_with('"text": "Kraków ☃"'.encode()), {"text": "Kraków ☃"}),
    (_with(b'"text": "\\\\ud800"'), {"text": "\\ud800"}),
    (_with(b'"text": null, "small": null, "address": null'), {"text": None, "small": None, "address": None}),
    (_with(b'"small": -2147483648'), {"small": -(2**31)}),
    (_with(b'"number": 9223372036854775807'), {"number": 2**63 - 1}),
    (_with(b'"price": 9999999999.99'), {"price": Decimal("9999999999.99")}),
    (_with(b'"price": -0.10'), {"price": Decimal("-0.10")}),
    (_with(b'"price": 12'), {"price": Decimal("12.00")}),
    (_with(b'"price": 0.1000'), {"price": Decimal("0.10")}),
    (_with(b'"share": 0.25'), {"share": Decimal("0.25")}),
    (_with(b'"ratio": 0.1'), {"ratio": 0.1}),
    (_with(b'"ratio": 1e-7'), {"ratio": 1e-7}),
    (_with(b'"ratio": 3'), {"ratio": 3.0}),
    (_with(b'"flag": true'), {"flag": True}),
    (_with(b'"day": "2024-02-29"'), {"day": date(2024, 2, 29)}),
    (_with(b'"raw": "AP8="'), {"raw": b"\0\xff"}),
    (_with(b'"unknown": {"a": [1, 2]}, "text": "x"'), {"text": "x"}),
    (_with(b'"address": {"city": "Bonn", "zip": 53111, "more": 1}'),
     {"address": {"city": "Bonn", "zip": 53111}}),
    (_with(b'"items": [{"price": 1.25}, null, {}]'),
     {"items": [{"price": Decimal("1.25")}, None, {"price": None}]}),
    (_with(b'"scores": {"a b": 7, "": null}'), {"scores": {"a b": 7, "": None}}),
    (b'{"at": "2026-01-31T13:30:00.123456+01:30"}', {"at": datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)}),
    (b'{"at": "2024-02-29T23:59:59-00:00"}', {"at": datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)}),
]  # fmt: skip

BROKEN: list[tuple[bytes, str]] = [
    (b"", "malformed_body"),
    (b"{", "malformed_body"),
    (b"null", "malformed_body"),
    (b"[{" + AT + b"}]", "malformed_body"),
    (b"{" + AT + b"} x", "malformed_body"),
    (b"{" + AT + b"}]", "malformed_body"),
    (b"{" + AT + b"}, {}", "malformed_body"),
    (b"{" + AT + b"}{}", "malformed_body"),
    (b"{" + AT + b',"text": "a", "text": "a"}', "malformed_body"),
    (_with(b'"other": {"a": 1, "a": 2}'), "malformed_body"),
    (_with(b"'text': 'a'"), "malformed_body"),
    (_with(b'"ratio": NaN'), "malformed_body"),
    (_with(b'"text": "\\ud800"'), "malformed_body"),
    (_with(b'"text": "\\udc00 \\ud83d\\ude00"'), "malformed_body"),
    (_with(b'"text": "\\\\ud83d\\ude00"'), "malformed_body"),
    (b"\xef\xbb\xbf{" + AT + b"}", "malformed_body"),
    (_with(b'"text": "\xff"'), "invalid_utf8"),
    (_with(b'"text": 7'), "wrong_type:text"),
    (_with(b'"small": 2147483648'), "wrong_type:small"),
    (_with(b'"small": 1.0'), "wrong_type:small"),
    (_with(b'"number": 9223372036854775808'), "wrong_type:number"),
    (_with(b'"number": "7"'), "wrong_type:number"),
    (_with(b'"price": "7.00"'), "wrong_type:price"),
    (_with(b'"price": 7e2'), "wrong_type:price"),
    (_with(b'"price": 0.125'), "decimal_out_of_range:price"),
    (_with(b'"price": 10000000000.00'), "decimal_out_of_range:price"),
    (_with(b'"price": 1' + b"0" * 38), "decimal_out_of_range:price"),
    (_with(b'"price": -' + b"9" * 400), "decimal_out_of_range:price"),
    (_with(b'"share": 1.25'), "decimal_out_of_range:share"),
    (_with(b'"ratio": 1e999'), "wrong_type:ratio"),
    (_with(b'"ratio": "x"'), "wrong_type:ratio"),
    (_with(b'"flag": 1'), "wrong_type:flag"),
    (_with(b'"day": "2023-02-29"'), "wrong_type:day"),
    (_with(b'"day": "now"'), "wrong_type:day"),
    (_with(b'"day": "2023-02-28\\n"'), "wrong_type:day"),
    (_with(b'"day": "2023-02-28\\r\\n"'), "wrong_type:day"),
    (_with(b'"raw": "A"'), "wrong_type:raw"),
    (_with(b'"address": "Bonn"'), "wrong_type:address"),
    (_with(b'"address": {"city": 1, "zip": 2}'), "wrong_type:address.city"),
    (_with(b'"items": {}'), "wrong_type:items"),
    (_with(b'"items": [{"price": 1}, {"price": "x"}]'), "wrong_type:items[].price"),
    (_with(b'"items": [{"price": 1.001}]'), "decimal_out_of_range:items[].price"),
    (_with(b'"items": [{"price": 1}, {"price": ' + b"7" * 39 + b"}]"), "decimal_out_of_range:items[].price"),
    (_with(b'"scores": {"a": 1, "b": true}'), "wrong_type:scores[]"),
    (b'{"at": 1769860800}', "wrong_type:at"),
    (b'{"at": "2026-01-31T12:00:00"}', "wrong_type:at"),
    (b'{"at": "2026-01-31 12:00:00Z"}', "wrong_type:at"),
    (b'{"at": "2026-02-30T12:00:00Z"}', "wrong_type:at"),
    (b'{"at": "2026-01-31T12:00:00Z\\n"}', "wrong_type:at"),
    (b'{"at": "2026-01-31T12:00:00.1234567Z"}', "wrong_type:at"),
    (b'{"at": "0001-01-01T00:00:00+01:00"}', "time_out_of_range:at"),
    (b'{"at": "20260-01-31T12:00:00Z"}', "wrong_type:at"),
]  # fmt: skip
