"""A topic whose values are messages of Protobuf: each is read as the schema of its id says, or refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import Row, SparkSession

from tests.ingest import framed
from tests.ingest.asking import answered
from tests.ingest.framed import first_look, mutated, plain
from tests.ingest.stage import Stage
from tests.ingest.test_verdicts import KAFKA
from tests.registry import confluent_client
from twinlake.base.errors import ContractError
from twinlake.ingest import first_pass, protobuf_body
from twinlake.topics import registered
from twinlake.topics.change import breaking
from twinlake.topics.protobuf_schema import message_class
from twinlake.topics.registering import register
from twinlake.topics.registry import Registry
from twinlake.topics.topic import Topic
from twinlake.topics.values import value_writer
from twinlake.topics.verdict import records_in
from twinlake.witness.answer import EQUAL

HEAD = b"\0\0\0\0\x07"
THING = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message Thing {
  google.protobuf.Timestamp at = 1;
  string text = 2;
  optional string maybe = 3;
  int32 small = 4;
  sint64 number = 5;
  uint64 large = 6;
  fixed32 bits = 7;
  double ratio = 8;
  float share = 9;
  bool flag = 10;
  bytes raw = 11;
  Color color = 12;
  Address address = 13;
  repeated int32 scores = 14;
  repeated Address others = 15;
  map<string, int64> counts = 16;
  map<int32, Address> places = 17;
  oneof choice { string by_name = 18; int64 by_number = 19; }
  google.protobuf.Duration took = 20;
  google.protobuf.StringValue note = 21;
  repeated Color colors = 22;
  google.protobuf.UInt64Value most = 24;
}
enum Color { COLOR_UNKNOWN = 0; RED = 1; BLUE = 5; NEGATIVE = -1; }
message Address { string city = 1; optional int32 zip = 2; google.protobuf.Timestamp since = 3; }
"""
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 500_000, UTC)
AT = b"\x0a\x06\x08\xc0\xdd\xf7\xcb\x06"
NOTHING: dict[str, Any] = {
    "at": datetime(2026, 1, 31, 12, tzinfo=UTC), "text": "", "maybe": None, "small": 0, "number": 0,
    "large": Decimal(0), "bits": 0, "ratio": 0.0, "share": 0.0, "flag": False, "raw": b"",
    "color": "COLOR_UNKNOWN", "address": None, "scores": [], "others": [], "counts": {}, "places": {},
    "by_name": None, "by_number": None, "took": None, "note": None, "colors": [], "most": None,
}  # fmt: skip
SOUND: list[tuple[bytes, dict[str, Any]]] = [
    (b"\0" + AT, NOTHING),
    (b"\x02\0" + AT, {"text": ""}),
    (b"\0\x12\x01x" + AT, {"text": "x"}),
    (b"\0\x1a\0" + AT, {"maybe": ""}),
    (b"\0" + AT + b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", {"small": -1}),
    (b"\0" + AT + b"\x20\x80\x80\0", {"small": 0}),
    (b"\0" + AT + b"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", {"number": -(2**63)}),
    (b"\0" + AT + b"\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", {"large": Decimal(2**64 - 1)}),
    (b"\0" + AT + b"\x3d\xff\xff\xff\xff", {"bits": 2**32 - 1}),
    (b"\0" + AT + b"\x60\x05", {"color": "BLUE"}),
    (b"\0" + AT + b"\x60\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", {"color": "NEGATIVE"}),
    (b"\0" + AT + b"\x6a\0", {"address": {"city": "", "zip": None, "since": None}}),
    (b"\0" + AT + b"\x72\x03\x01\x02\x03\x70\x04\x72\0", {"scores": [1, 2, 3, 4]}),
    (b"\0" + AT + b"\xb2\x01\x02\x01\x05", {"colors": ["RED", "BLUE"]}),
    (b"\0" + AT + b"\x82\x01\x05\x0a\x01a\x10\x07\x82\x01\0", {"counts": {"a": 7, "": 0}}),
    (b"\0" + AT + b"\x8a\x01\x06\x08\x05\x12\x02\x10\x09",
     {"places": {"5": {"city": "", "zip": 9, "since": None}}}),
    (b"\0" + AT + b"\x8a\x01\0", {"places": {"0": {"city": "", "zip": None, "since": None}}}),
    (b"\0" + AT + b"\x98\x01\0", {"by_number": 0, "by_name": None}),
    (b"\0" + AT + b"\xa2\x01\x02\x10\x05", {"took": {"seconds": 0, "nanos": 5}}),
    (b"\0" + AT + b"\xaa\x01\0", {"note": ""}),
    (b"\0" + AT + b"\xc2\x01\x02\x08\x05", {"most": Decimal(5)}),
    (b"\0\x0a\x0c\x08\xc0\xdd\xf7\xcb\x06\x10\x80\xca\xb5\xee\x01", {"at": MOMENT}),
    (b"\0\x0a\x0c\x08\xc0\xdd\xf7\xcb\x06\x10\xe7\xd1\xb5\xee\x01", {"at": MOMENT}),
]  # fmt: skip
BROKEN: list[tuple[bytes, str]] = [
    (b"\x02\x02" + AT, "malformed_body"),  # another message of the file
    (b"\x04\0\0" + AT, "malformed_body"),
    (b"\x01" + AT, "malformed_body"),
    (b"\0" + AT[:-1], "malformed_body"),
    (b"\0" + AT + b"\x00", "malformed_body"),
    (b"\0" + AT + b"\xf8\x07\x01", "malformed_body"),  # no field of the schema
    (b"\0" + AT + b"\x10\x05", "malformed_body"),  # text as a number
    (b"\0" + AT + b"\x22\x01\x05", "malformed_body"),  # a number as text
    (b"\0" + AT + b"\x25\1\0\0\0", "malformed_body"),
    (b"\0" + AT + AT, "malformed_body"),
    (b"\0" + AT + b"\x20\x01\x20\x02", "malformed_body"),
    (b"\0" + AT + b"\x20\x80\x80\x80\x80\x08", "malformed_body"),  # 2**31 of an int32
    (b"\0" + AT + b"\x50\x02", "malformed_body"),  # a bool of 2
    (b"\0" + AT + b"\x60\x02", "malformed_body"),  # no symbol
    (b"\0" + AT + b"\xb2\x01\x02\x01\x02", "malformed_body"),
    (b"\0" + AT + b"\x92\x01\0\x98\x01\0", "malformed_body"),  # two of one
    (b"\0" + AT + b"\x82\x01\x03\x0a\x01a\x82\x01\x03\x0a\x01a", "malformed_body"),
    (b"\0" + AT + b"\x82\x01\x02\x18\x01", "malformed_body"),
    (b"\0" + AT + b"\x72\x02\x01\x80", "malformed_body"),
    (b"\0" + AT + b"\x6a\x7f", "malformed_body"),
    (b"\0" + AT + b"\x6a\xff\xff\xff\xff\x0f", "malformed_body"),
    (b"\0" + AT + b"\x6a\x02\x20\x01", "malformed_body"),
    (b"\0" + AT + b"\xaa\x01\x02\x10\x01", "malformed_body"),
    (b"\0\x0b\x0c" + AT, "malformed_body"),
    (b"\0\x0a\x06\x10\x80\x94\xeb\xdc\x03", "malformed_body"),  # 10**9 nanoseconds
    (b"\0" + AT + b"\x12\x01\xff", "invalid_utf8:text"),
    (b"\0" + AT + b"\x6a\x03\x0a\x01\xff", "invalid_utf8:address"),
    (b"\0" + AT + b"\x82\x01\x03\x0a\x01\xff", "invalid_utf8:counts"),
    (b"\0\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x01\xff", "invalid_utf8:text"),
    (b"\0\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "time_out_of_range:at"),
    (b"\0\x0a\x07\x08\x80\x83\xd1\xff\xaf\x07", "time_out_of_range:at"),
    (b"\0" + AT + b"\x6a\x0c\x1a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "time_out_of_range:address"),
    (b"\0", "missing:at"),
    (b"\xfe\xff\xff\xff\x0f" + b"\0" * 40 + AT, "malformed_body"),  # 2**31 - 1 indexes
    (b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80" + AT, "malformed_body"),
    (b"\x02\x01" + AT, "malformed_body"),  # the message before the first one
    (b"\x02", "malformed_body"),
    (b"\0" + AT + b"\x6a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "malformed_body"),  # a length of -1
    (b"\0" + AT + b"\x72\xff\xff\xff\xff\x07", "malformed_body"),  # 2**31 - 1 packed bytes
    (b"\0" + AT + b"\x20" + b"\x80" * 10 + b"\x01", "malformed_body"),  # a number of eleven bytes
    (b"\0" + AT + b"\x0c", "malformed_body"),  # the end of a group that nothing began
    (b"\0" + AT + b"\x0f", "malformed_body"),  # wire type 7
    (b"\0" + AT + b"\xf3\x07" * 120, "malformed_body"),  # groups in groups
]  # fmt: skip


def proto(text: str) -> dict[str, Any]:
    return registered.of("PROTOBUF", text)


@pytest.fixture(scope="module")
def looked(spark: SparkSession) -> dict[bytes, Row]:
    """Every case as ingest's first look finds it, with the event that the log would have."""
    topic = framed.read_by("things", proto(THING))
    writer = framed.learned(topic, spark, proto(THING))
    return first_look(spark, topic, writer, [HEAD + one for one, _ in (*SOUND, *BROKEN)])


@pytest.mark.parametrize(("body", "fields"), SOUND)
def test_a_message_is_an_event_with_exact_values(
    looked: dict[bytes, Row], body: bytes, fields: dict[str, Any]
) -> None:
    row = looked[body]

    assert row.reasons is None
    assert {name: plain(row.event[name]) for name in fields} == fields


@pytest.mark.parametrize(("body", "reason"), BROKEN)
def test_what_is_no_message_is_refused(looked: dict[bytes, Row], body: bytes, reason: str) -> None:
    row = looked[body]

    assert row.reasons == reason
    assert (row.event is None) == (not reason.startswith("missing"))


def serializer(stage: Stage, text: str, message: str | None = None) -> Callable[..., bytes]:
    """Confluent's own, which registers the schema; it is given what a message has."""
    return serializer_for(stage.registry.url, stage.topic.name, text, message)


def serializer_for(url: str, topic: str, text: str, message: str | None = None) -> Callable[..., bytes]:
    """The same for a registry and a topic."""
    made, _ = message_class(text, {}, "", message)
    client = confluent_client(url)
    written = ProtobufSerializer(made, client, {"use.deprecated.format": False})
    context = SerializationContext(topic, MessageField.VALUE)
    return lambda **values: bytes(written(made(**values), context) or b"")


def whole() -> dict[str, Any]:
    """Every field of a thing."""
    at = {"seconds": 1_769_860_800, "nanos": 500_000_999}
    bonn = {"city": "Bonn", "zip": 0, "since": at}
    return {
        "at": at, "text": "Krak\u00f3w", "maybe": "", "small": -(2**31), "number": -(2**63),
        "large": 2**64 - 1, "bits": 2**32 - 1, "ratio": 0.1, "share": 0.5, "flag": True, "raw": b"\0\xff",
        "color": 5, "address": bonn, "scores": [1, -1], "others": [bonn, {}], "counts": {"a": 1},
        "places": {-5: bonn}, "by_number": 0, "took": {"seconds": 3, "nanos": 4}, "note": {"value": "n"},
        "colors": [1, 0], "most": {"value": 2**64 - 1},
    }  # fmt: skip


SHOWN_BONN = {"city": "Bonn", "zip": 0, "since": MOMENT}
SHOWN: dict[str, Any] = {
    "at": MOMENT, "text": "Krak\u00f3w", "maybe": "", "small": -(2**31), "number": -(2**63),
    "large": Decimal(2**64 - 1), "bits": 2**32 - 1, "ratio": 0.1, "share": 0.5, "flag": True,
    "raw": b"\0\xff", "color": "BLUE", "address": SHOWN_BONN, "scores": [1, -1],
    "others": [SHOWN_BONN, {"city": "", "zip": None, "since": None}], "counts": {"a": 1},
    "places": {"-5": SHOWN_BONN}, "by_name": None, "by_number": 0, "took": {"seconds": 3, "nanos": 4},
    "note": "n", "colors": ["RED", "COLOR_UNKNOWN"], "most": Decimal(2**64 - 1),
}  # fmt: skip


@pytest.mark.usefixtures("way")
def test_what_confluent_client_serializer_writes_is_read_and_what_nobody_wrote_waits(faked: Stage) -> None:
    framed.things(faked, proto(THING))
    written = serializer(faked, THING)
    good = written(**whole())
    ours = value_writer(faked.topic, int.from_bytes(good[1:5], "big"))
    event = {**SHOWN, "at": MOMENT, "most": 2**64 - 1}
    faked.produce(
        good, written(at={"seconds": 1_769_860_800}), ours(event), good[5:], good[:-1], good + b"\0",
        good[:5], None, b"\0\0\0\0\x63\0", good[:5] + b"\0",
        serializer(faked, THING, "shop.Address")(city="Bonn"),
    )  # fmt: skip

    log = faked.run()

    verdicts = [row[3:] for row in faked.verdicts(log)]
    assert verdicts[:10] == [
        ("valid", ()), ("valid", ()), ("valid", ()), ("invalid", ("unknown_schema",)),
        ("invalid", ("malformed_body",)), ("invalid", ("malformed_body",)), ("invalid", ("malformed_body",)),
        ("invalid", ("null_value",)), ("invalid", ("unknown_schema",)), ("invalid", ("missing:at",)),
    ]  # fmt: skip
    assert verdicts[10] == ("invalid", ("malformed_body",))
    first, second, third = log.rows(0, log.end()).orderBy("_offset").collect()
    assert {name: plain(first[name]) for name in SHOWN} == SHOWN
    assert {name: plain(second[name]) for name in NOTHING} == NOTHING
    assert {name: plain(third[name]) for name in SHOWN} == SHOWN
    answer = answered(faked, log)
    assert (answer.verdict, answer.differences, dict(answer.unsure)) == (EQUAL, (), {})


def test_bytes_that_are_changed_at_random_are_what_the_library_reads_or_are_refused(
    faked: Stage, request: pytest.FixtureRequest
) -> None:
    drawn = random.Random(request.config.option.seed)
    framed.things(faked, proto(THING))
    good = serializer(faked, THING)(**whole())
    few = [good[:5] + one for one, _ in SOUND]
    faked.produce(*(mutated(drawn.choice([good, *few]), drawn) for _ in range(800)))

    log = faked.run()

    assert records_in(log.metadata()["counts"]) == 800
    answer = answered(faked, log, drawn.randrange(1, 1 << 30))
    assert (answer.verdict, answer.differences) == (EQUAL, ())
    assert answer.compared > 400


def message(*fields: str, more: str = "") -> str:
    head = 'syntax = "proto3";\nimport "google/protobuf/timestamp.proto";\n'
    lines = "\n".join(f"  {one};" for one in ("google.protobuf.Timestamp at = 1", *fields))
    return f"{head}message Thing {{\n{lines}\n}}\n{more}"


FIRST = message(
    "int32 count = 2", "string who = 3", "string gone = 4", "Kind kind = 5", more="enum Kind { A = 0; }"
)  # fmt: skip
SECOND = message(
    "int64 count = 2", "string customer = 3", "Kind kind = 5", "uint64 rank = 6", "optional string note = 7",
    "repeated string tags = 8", more="enum Kind { A = 0; B = 1; }",
)  # fmt: skip


@pytest.mark.usefixtures("way")
def test_older_records_are_read_by_the_newest_schema_a_field_by_its_number(faked: Stage) -> None:
    framed.things(faked, proto(FIRST))
    at = {"seconds": 1_769_860_800}
    early = serializer(faked, FIRST)(at=at, count=1, who="anna", gone="x")
    faked.produce(early)
    faked.run()
    faked.topic = framed.read_by(faked.topic.name, proto(FIRST), proto(SECOND))
    register(Registry(faked.registry.url), faked.topic)
    late = serializer(faked, SECOND)(at=at, count=2**40, customer="ben", kind=1, rank=2**64 - 1, tags=["a"])
    faked.produce(late, early)

    log = faked.run()

    names = ("count", "customer", "kind", "rank", "note", "tags")
    rows = log.rows(0, log.end()).orderBy("_offset").collect()
    then = (1, "anna", "A", Decimal(0), None, [])
    assert [tuple(plain(row[name]) for name in names) for row in rows] == [
        then, (2**40, "ben", "B", Decimal(2**64 - 1), None, ["a"]), then,
    ]  # fmt: skip
    answer = answered(faked, log)
    assert (answer.verdict, answer.differences) == (EQUAL, ())


def test_records_of_a_schema_that_cannot_be_read_wait(faked: Stage) -> None:
    framed.things(faked, proto(FIRST))
    at = {"seconds": 1_769_860_800}
    other = serializer(faked, message("string count = 2"))
    swapped = serializer(faked, message("int32 number = 2", "int32 count = 9"))
    struct = 'syntax = "proto3"; import "google/protobuf/struct.proto";'
    open_ = message("int32 count = 2", "google.protobuf.Struct more = 9")
    opened = serializer(faked, open_.replace('syntax = "proto3";', struct))
    newer = serializer(faked, message("Kind kind = 5", more="enum Kind { A = 0; Z = 7; }"))
    faked.produce(
        other(at=at, count="x"), swapped(at=at, count=1), opened(at=at, count=1, more={"a": 1}),
        newer(at=at, kind=7),
    )  # fmt: skip

    log = faked.run()

    assert [row[3:] for row in faked.verdicts(log)] == [
        ("invalid", ("unreadable_by_schema:count",)), ("invalid", ("unreadable_by_schema:count",)),
        ("valid", ()), ("valid", ()),
    ]  # fmt: skip
    assert [row.kind for row in log.rows(0, log.end()).orderBy("_offset").collect()] == ["A", "Z"]
    answer = answered(faked, log)
    assert (answer.verdict, answer.differences) == (EQUAL, ())


def test_schemas_that_nobody_can_read_leave_the_others_alone(faked: Stage) -> None:
    framed.things(faked, proto(FIRST))
    doubled = [f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(30)]
    schemas: list[dict[str, Any]] = [
        proto(message("int32 count = 2") + "}"),
        proto(message("int32 count = 2").replace('proto3";', 'proto3"; import "/etc/passwd";')),
        proto(message("M0 count = 2", more="".join([*doubled, "message M30 { string a = 1; }"]))),
        proto(message("M0 more = 9", more="".join([*doubled, "message M30 { string a = 1; }"]))),
        proto(message("int32 count = 2", *(f"string f{n} = {n}" for n in range(10, 2000)))),
        proto('syntax = "proto2"; message T { optional group Count = 1 { optional int32 a = 1; } }'),
        {"schemaType": "JSON", "schema": {"type": "object", "properties": {"count": {"type": "integer"}}}},
        {"schemaType": "XML", "schema": "<a/>"},
        {"type": "record", "name": "a", "fields": [{"name": "count", "type": "int"}]},
    ]
    for number, said in enumerate(schemas, start=90):
        faked.registry.add(faked.subject, number, said)  # type: ignore[union-attr]
        count = b"" if number == 93 else b"\x10\x05"  # whose schema has none
        faked.produce(b"\0" + number.to_bytes(4, "big") + b"\0" + AT + count)

    log = faked.run()

    found = [row[3:] for row in faked.verdicts(log)]
    waiting = ("invalid", ("unreadable_by_schema",))
    assert found == [
        waiting, waiting, ("invalid", ("unreadable_by_schema:count",)), ("valid", ()), ("valid", ()),
        ("invalid", ("unreadable_by_schema:count",)), waiting, waiting, waiting,
    ]  # fmt: skip
    answer = answered(faked, log)
    assert (answer.verdict, answer.differences) == (EQUAL, ())


def changed(*fields: str, more: str = "") -> tuple[str, str] | None:
    """What is wrong with a second file of these fields, after the first one."""
    inside = "message In { string a = 1; string b = 2; }"
    first = message("int32 count = 2", "In inner = 3", more=inside)
    topic = framed.read_by("things", proto(first), proto(message(*fields, more=more or inside)))
    return breaking(topic.schemas[0].fields, topic.newest)


def test_a_file_may_add_drop_and_rename_fields_but_no_number_gets_another_meaning() -> None:
    renamed_inside = "message In { string a = 1; string c = 2; }"
    grown_inside = "message In { string a = 1; string d = 4; }"
    moved_inside = "message In { string a = 2; string b = 1; }"

    assert changed("int32 count = 2", "In inner = 3", "string new = 4") is None
    assert changed("In inner = 3") is None
    assert changed("int32 amount = 2", "In inner = 3") is None
    assert changed("int64 count = 2", "In inner = 3") is None
    assert changed("sint32 count = 2", "In inner = 3") is None
    assert changed("int32 count = 2", "In inner = 3", more=grown_inside) is None
    for fields, more, path in (
        (("string count = 2", "In inner = 3"), "", "count"),
        (("int32 count = 4", "In inner = 3"), "", "count"),
        (("int32 count = 2", "In inner = 3"), renamed_inside, "inner"),
        (("int32 count = 2", "In inner = 3"), moved_inside, "inner"),
    ):
        found = changed(*fields, more=more)
        assert found is not None and found[0] == path, (fields, more, found)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("hello", ""),
        ('syntax = "proto3";', ""),
        (message("Thing thing = 2"), "Thing.thing"),
        (message("In inner = 2", more="message In { repeated In more = 1; }"), "Thing.inner.more"),
        (message("Nothing inner = 2", more="message Nothing {}"), "Thing.inner"),
        (message("string _a = 2"), "Thing._a"),
        (message("In inner = 2", more="message In { string a = 1; string A = 2; }"), "Thing.inner.a"),
        ('syntax = "proto2"; message Thing { optional group In = 1 { optional int32 a = 1; } }', "Thing.in"),
        ('syntax = "proto3"; import "other.proto"; message Thing { Other a = 1; }', ""),
    ],
)
def test_what_is_no_topic_is_refused_with_its_place(text: str, path: str) -> None:
    with pytest.raises(ContractError) as caught:
        framed.read_by("things", proto(text))

    assert caught.value.path == path
    assert caught.value.remedy


def test_what_protobuf_2_requires_has_to_be_there(spark: SparkSession) -> None:
    text = """syntax = "proto2"; import "google/protobuf/timestamp.proto";
    message Thing { required google.protobuf.Timestamp at = 1; optional int32 a = 2 [default = 7];
      required int32 b = 3; }"""
    topic: Topic = framed.read_by("things", proto(text))
    writer = framed.learned(topic, spark, proto(text))

    found = first_look(spark, topic, writer, [HEAD + b"\0" + AT + b"\x18\x05", HEAD + b"\0" + AT])

    (sound, lacking) = found.values()
    assert (sound.event.a, sound.event.b, lacking.reasons) == (None, 5, "malformed_body")


def test_messages_of_two_bytes_each_do_not_fill_the_memory(spark: SparkSession) -> None:
    topic = framed.read_by("things", proto(THING))
    writer = framed.learned(topic, spark, proto(THING))
    many, most = (b"\0" + AT + b"\x7a\0" * count for count in (10_000, 1_400_000))

    found = first_look(spark, topic, writer, [HEAD + many, HEAD + most])

    assert (len(found[many].event.others), found[many].reasons) == (10_000, None)
    assert found[most].reasons == "malformed_body"


def test_what_a_schema_passes_over_may_be_nested_without_end(spark: SparkSession) -> None:
    """A group that the topic has no column for."""
    text = """syntax = "proto2"; import "google/protobuf/timestamp.proto";
    message Thing { required google.protobuf.Timestamp at = 1;
      repeated group In = 2 { repeated group Deep = 3 { optional int32 a = 1; } } }"""
    topic = framed.read_by("things", proto(message()))
    writer = framed.learned(topic, spark, proto(text))
    groups = (b"\x13\x1b\x08\x05\x1c\x14", b"\x13" * 100_000 + b"\x14" * 100_000, b"\x13\x1b\x1c")
    sound, deep, open_ = (b"\0" + AT + one for one in groups)

    found = first_look(spark, topic, writer, [HEAD + one for one in (sound, deep, open_)])

    assert [found[one].reasons for one in (sound, deep, open_)] == [None, *["malformed_body"] * 2]


def test_records_of_another_session_than_ours_are_read_too(spark: SparkSession) -> None:
    """A stream's batches come in a copy of the session that was made when it began."""
    topic = framed.read_by("things", proto(FIRST))
    writer = framed.learned(topic, spark, proto(FIRST))
    rows = [(None, HEAD + b"\0" + AT + b"\x10\x05", "things", 0, 0, framed.NOW, 1, None)]
    records = spark.newSession().createDataFrame(rows, KAFKA)
    protobuf_body.register_all(records, [writer])
    protobuf_body.register_all(records, [writer])

    for expressions in first_pass.selections(topic, [writer], framed.MARK, writer.stored):
        records = records.selectExpr(*expressions)

    (row,) = records.collect()
    assert (row.reasons, row.event["count"]) == (None, 5)


def test_what_a_schema_imports_is_looked_up_in_the_registry(faked: Stage) -> None:
    framed.things(faked, proto(message("string city = 2")))
    address = 'syntax = "proto3"; message Address { string city = 1; }'
    thing = message("Address address = 3", "string city = 2").replace(
        'syntax = "proto3";', 'syntax = "proto3"; import "address.proto";'
    )
    faked.registry.add("address.proto", 90, proto(address))  # type: ignore[union-attr]
    references = [{"name": "address.proto", "subject": "address.proto", "version": 1}]
    said: Mapping[str, Any] = {**proto(thing), "references": references}
    faked.registry.add(faked.subject, 91, dict(said))  # type: ignore[union-attr]
    made, _ = message_class(thing, {"address.proto": address}, "", None)
    value = made(at={"seconds": 1_769_860_800}, city="Bonn", address={"city": "x"}).SerializeToString()
    faked.produce(b"\0" + (91).to_bytes(4, "big") + b"\0" + value)

    log = faked.run()

    assert [row.city for row in log.rows(0, log.end()).collect()] == ["Bonn"]
    assert answered(faked, log).verdict == EQUAL
