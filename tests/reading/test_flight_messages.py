"""What Flight SQL's clients send is read as they mean it, or refused before Java or Spark sees it."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pyarrow as pa
import pytest

from twinlake.base.errors import UsageError
from twinlake.reading.flight import catalog, compression, framing, information, login, protocol
from twinlake.reading.flight.handles import Asked

pytestmark = pytest.mark.quick


def stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as to:
        to.write_table(rows)
    return bytes(sink.getvalue())


def basic(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"Basic {basic('ana:pass:word')}", ("ana", "pass:word")),
        (f"Basic {basic('ana:p').rstrip('=')}", ("ana", "p")),
        (f"bearer {basic('ana:ä')}", ("ana", "ä")),
        (login.token("ana", ""), ("ana", "")),
        (f"Basic {basic('ana')}", ("", "")),
        ("Basic !!", ("", "")),
        ("Basic /w==", ("", "")),
        ("Negotiate abc", ("", "")),
        ("", ("", "")),
    ],
)
def test_a_login_is_read_as_drivers_write_it(header: str, expected: tuple[str, str]) -> None:
    assert login.shown([("other", "x"), ("authorization", header)]) == expected


def test_a_handle_is_the_statement_itself() -> None:
    asked = Asked(sql="SELECT ?, 'ä'", as_of="release:1", parameters=b"\x00\xff", id="0123456789ab")

    assert Asked.of_bytes(asked.to_bytes()) == asked
    assert Asked(sql="SELECT 1", as_of="release:1").at(None, "x").as_of == "release:1"
    assert Asked(sql="SELECT 1", as_of="release:1").at("release:2", "x").as_of == "release:2"


@pytest.mark.parametrize(
    "handle",
    [b"", b"x", b"\xff", b"[]", b"1", b'["a", null, "", 1]', b'[1, null, "", ""]', b'["", null, "", ""]',
     b'["a", null, "!", ""]', b'["a", 1, "", ""]', b'{"sql": "a"}', b"[" * 100_000],
)  # fmt: skip
def test_what_was_never_a_handle_is_refused(handle: bytes) -> None:
    with pytest.raises(UsageError):
        Asked.of_bytes(handle)


def test_rows_come_as_one_message_for_a_megabyte() -> None:
    rows = pa.table({"a": pa.array(range(400_000)), "b": pa.array([None, "x"] * 200_000)})

    messages = [protocol.read("FlightData", frame) for frame in framing.frames(rows)]

    assert max(one.ByteSize() for one in messages) < 2 << 20 and len(messages) > 4
    with pa.ipc.open_stream(framing.stream_of(messages)) as read:
        assert read.read_all().equals(rows)


@pytest.mark.parametrize("given", [
    b"", b"x" * 1000, b"\xff\xff\xff\xff\x00\x10\x00\x00" + b"\x00" * 64,
    stream(pa.table({"a": pa.array([], pa.int64())})), stream(pa.table({"a": range(101)})),
])  # fmt: skip
def test_values_that_are_none_are_refused(given: bytes) -> None:
    with pytest.raises(UsageError, match="values for the statement were refused"):
        framing.parameters(given)


def test_values_that_grow_when_they_are_read_are_refused() -> None:
    """So many NULLs take no bytes, and compressed zeros a thousandth of theirs."""
    sink = pa.BufferOutputStream()
    rows = pa.table({"a": ["0" * 50_000_000]})
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as to:
        to.write_table(rows)
    words = pa.table({"a": pa.array(["x"] * 3).dictionary_encode()})
    other = pa.BufferOutputStream()
    with pa.ipc.new_stream(other, words.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as to:
        to.write_table(words)
    nulls = pa.ListArray.from_arrays([0, 100_000_000], pa.nulls(100_000_000))
    structs = pa.StructArray.from_arrays([nulls], ["a"])

    assert sink.getvalue().size < 1 << 20
    for given, why in (
        (sink.getvalue().to_pybytes(), "are compressed"), (other.getvalue().to_pybytes(), "are compressed"),
        (stream(pa.table({"a": nulls})), "more than 1,000,000"),
        (stream(pa.table({"a": structs})), "more than 1,000,000"),
        (stream(pa.table({"a": pa.nulls(1 << 30)})), "takes 1 to 100"),
        (stream(pa.table({"a": pa.RunEndEncodedArray.from_arrays([5], [1])})), "none of the types of Spark"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=why):
            framing.parameters(given)


@pytest.mark.parametrize("size", range(0, 120, 7))
def test_metadata_that_is_cut_is_no_message(size: int) -> None:
    (at,) = struct.unpack("<I", stream(pa.table({"a": [1]}))[4:8])
    batch = stream(pa.table({"a": [1]}))[8 + at + 8 :]

    for cut in (batch[:size], b"\xff" * size, b"\xff\xff\xff\x7f" + b"\x01" * size):
        try:
            assert compression.is_compressed(cut) in (True, False)
        except ValueError as error:
            assert "is damaged" in str(error)


def test_a_text_that_ends_beyond_its_bytes_is_refused() -> None:
    """As a client that lies would send it: Java would read what stands behind them."""
    honest = stream(pa.table({"a": ["x" * 77]}))
    offsets, lied = struct.pack("<ii", 0, 77), struct.pack("<ii", 0, 1 << 30)

    head, _, text = honest.rpartition(offsets)

    with pytest.raises(UsageError, match="values for the statement were refused"):
        framing.parameters(head + lied + text)


@pytest.mark.parametrize(("given", "kept"), [
    (pa.array([1], pa.uint8()), pa.int64()), (pa.array([1], pa.uint64()), pa.decimal128(20)),
    (pa.array(["x"]).dictionary_encode(), pa.utf8()), (pa.array(["x"], pa.large_string()), pa.utf8()),
    (pa.array([b"x"], pa.binary(1)), pa.binary()), (pa.array([1], pa.timestamp("s")), pa.timestamp("us")),
    (pa.array([1], pa.duration("ms")), pa.duration("us")), (pa.array([0], pa.date64()), pa.date32()),
    (pa.array([1], pa.int8()), pa.int8()), (pa.array([[1]]), pa.list_(pa.int64())),
])  # fmt: skip
def test_values_have_a_type_that_spark_knows(given: Any, kept: pa.DataType) -> None:
    with pa.ipc.open_stream(framing.parameters(stream(pa.table({"a": given})))) as read:
        assert read.schema.types == [kept]


@pytest.mark.parametrize(
    "data", [b"", b"x", b"\xff" * 20, protocol.make("Ticket", ticket=b"a").SerializeToString()]
)
def test_what_is_no_command_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="the request was refused"):
        protocol.unwrapped(data)


def test_a_field_that_may_be_missing_is_known_to_be() -> None:
    kind, command = protocol.unwrapped(protocol.wrapped("CommandGetTables", db_schema_filter_pattern=""))

    assert kind == "CommandGetTables"
    assert command.HasField("db_schema_filter_pattern") and not command.HasField("catalog")


class Nothing:
    """A reader that may read nothing."""

    def schemas(self, pattern: str | None, user: str = "") -> list[str]:
        return []

    def tables(self, schema: str | None, table: str | None, user: str = "") -> list[Any]:
        return []

    def is_table(self, schema: str, name: str) -> bool:
        return False


def test_an_answer_of_the_catalog_has_the_columns_that_were_announced() -> None:
    for kind in catalog.KINDS:
        command = protocol.make(kind)
        for whom in ("", catalog.SQLALCHEMY):
            found = catalog.answer(Nothing(), "ana", kind, command, whom)
            assert found.schema == catalog.columns(kind, command), kind
    with_columns = protocol.make("CommandGetTables", include_schema=True)
    found = catalog.answer(Nothing(), "ana", "CommandGetTables", with_columns)
    assert found.schema == catalog.columns("CommandGetTables", with_columns)
    assert found.schema.names[-1] == "table_schema"


def test_information_is_what_was_asked_for() -> None:
    assert information.sql_info([3, 0, 77]).to_pylist() == [
        {"info_name": 0, "value": "Twinlake"}, {"info_name": 3, "value": True}
    ]  # fmt: skip
    times = information.type_info(93).to_pylist()
    assert [one["type_name"] for one in times] == ["TIMESTAMP", "TIMESTAMP_NTZ"]
