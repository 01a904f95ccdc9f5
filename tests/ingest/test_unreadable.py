"""A record that the newest schema cannot read waits in quarantine; the topic and the others go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ingest.fed import Fed, renamed
from tests.ingest.stage import Stage
from tests.ingest.test_evolution import MOMENT, field, read_with, record, send
from twinlake.base.errors import StoppedTopicError
from twinlake.ingest import replay
from twinlake.kinds.latest import Latest
from twinlake.lake.log.fresh_rows import NewRows
from twinlake.lake.log.log import Log

FIRST = record(field("id", "string"), field("count", "int"), field("who", "string"))
LONG = record(field("id", "string"), field("count", "long"), field("who", "string"))
WITHOUT = record(field("id", "string"), field("count", "int"))
TEXT = record(field("id", "string"), field("count", "string"), field("who", "string"))
DEFAULT = record(field("id", "string"), field("count", "long"), field("who", "string", default="nobody"))
OLD = {"at": MOMENT, "who": "anna"}


def values(id_: str, count: Any = 1, **more: Any) -> dict[str, Any]:
    return {**OLD, "id": id_, "count": count, **more}


def begun(stage: Stage, *versions: dict[str, Any], **custom: str) -> None:
    renamed(stage)
    stage.create(partitions=1)
    read_with(stage, *versions, **custom)


def latest(log: Log) -> dict[int, tuple[Any, ...]]:
    """By offset of partition 0, the latest verdict with its reasons."""
    rows = log.all(0, log.end()).orderBy("batch").collect()
    return {row.offset: (row.verdict, *row.reasons) for row in rows}


def table(stage: Stage) -> Latest:
    return Latest(
        name="things", inputs=(stage.topic.name,), keys=("who",), values=("id", "count"),
        columns={"who": "who", "id": "id", "count": "CAST(count AS bigint)"},
    )  # fmt: skip


def test_what_cannot_be_read_waits_and_enters_by_itself_as_if_its_schema_had_always_been_there(
    faked: Stage, way: str, tmp_path: Path
) -> None:
    begun(faked, FIRST)
    fed = Fed(faked, table(faked))
    send(faked, FIRST, **values("a"))
    fed.run()
    send(faked, LONG, **values("b", 2**40))
    send(faked, WITHOUT, at=MOMENT, id="c", count=3)
    send(faked, FIRST, **values("d", 4, who="ben"))

    log = fed.run()

    assert latest(log) == {
        0: ("valid",), 1: ("invalid", "unreadable_by_schema:count"),
        2: ("invalid", "unreadable_by_schema:who"), 3: ("valid",),
    }  # fmt: skip
    (kept,) = log.all(0, log.end()).where("offset = 1").collect()
    assert kept.event is None and kept.value[:5] == b"\0" + kept.schema_id.to_bytes(4, "big")
    waiting = faked.ingests[-1].unreadable()
    assert [(one["records"], one["reason"]) for one in waiting] == [
        (1, "unreadable_by_schema:count"), (1, "unreadable_by_schema:who"),
    ]  # fmt: skip
    assert "'count' is a long" in waiting[0]["remedy"] and "v2.avsc" in waiting[0]["remedy"]
    assert "'who' has a default" in waiting[1]["remedy"] and "by themselves" in waiting[1]["remedy"]

    read_with(faked, FIRST, DEFAULT)
    log = fed.run()

    assert set(latest(log).values()) == {("valid",)}
    assert faked.ingests[-1].unreadable() == []
    shown = fed.shows()
    assert {row[:3] for row in shown} == {("anna", "b", 2**40), ("nobody", "c", 3), ("ben", "d", 4)}
    end = log.end()
    assert fed.run().end() == end  # nothing is left to validate
    faked.settings = faked.lake_of(tmp_path / "from the beginning")
    other = Fed(faked, table(faked))
    other.run()
    assert other.shows() == shown


def test_a_type_that_no_schema_reads_beside_the_old_one_holds_nobody_back(faked: Stage) -> None:
    begun(faked, FIRST)
    send(faked, FIRST, **values("a"))
    send(faked, TEXT, **values("b", "many"))
    send(faked, FIRST, **values("c"))

    log = faked.run()

    assert latest(log) == {0: ("valid",), 1: ("invalid", "unreadable_by_schema:count"), 2: ("valid",)}
    (waiting,) = faked.ingests[-1].unreadable()
    assert waiting["why"].startswith(
        "field 'count' is read as int and sent as string: a field keeps its type"
    )
    assert "under another name" in waiting["remedy"] and "avsc" not in waiting["remedy"]


@pytest.mark.parametrize(
    ("schema", "more", "reason"),
    [
        (record(*FIRST["fields"][1:], field("Who", "int")), {"Who": 1}, "unreadable_by_schema:Who"),
        (record(*FIRST["fields"][1:], field("many", {"type": "array", "items": "null"})), {"many": [None]},
         "unreadable_by_schema:many"),
    ],
)  # fmt: skip
def test_what_the_log_cannot_keep_waits_too(
    faked: Stage, schema: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    begun(faked, FIRST)
    send(faked, schema, **values("a", **more))
    send(faked, FIRST, **values("b"))

    assert latest(faked.run()) == {0: ("invalid", reason), 1: ("valid",)}


def test_by_contract_a_topic_stops_and_goes_on_once_its_remedy_was_followed(faked: Stage) -> None:
    begun(faked, FIRST, unreadableRecords="stop")
    send(faked, FIRST, **values("a"))
    send(faked, LONG, **values("b", 2**40))

    stopped = faked.stopped()

    assert isinstance(stopped.error, StoppedTopicError)
    assert "'count' is a long" in stopped.error.remedy
    read_with(faked, FIRST, LONG, unreadableRecords="stop")
    assert latest(faked.run()) == {0: ("valid",), 1: ("valid",)}
    send(faked, TEXT, **values("c", "many"))

    again = faked.stopped()

    assert again.error is not None and "unreadableRecords: quarantine" in again.error.remedy
    read_with(faked, FIRST, LONG, unreadableRecords="quarantine")
    assert latest(faked.run())[2] == ("invalid", "unreadable_by_schema:count")


def test_a_schema_file_that_cannot_read_what_the_log_has_is_refused_before_it_is_active(faked: Stage) -> None:
    begun(faked, FIRST)
    wider = record(*FIRST["fields"][1:], field("more", "long"))
    send(faked, wider, **values("a", more=2**40))
    faked.run()
    read_with(faked, FIRST, record(*FIRST["fields"][1:], field("more", "int", default=0)))

    refused = faked.stopped()

    assert isinstance(refused.error, StoppedTopicError)
    assert "'more' is int, and the log has it as bigint" in refused.error.why
    assert "give the field that type" in refused.error.remedy
    read_with(faked, FIRST, record(*FIRST["fields"][1:], field("more", "long", default=0)))
    assert latest(faked.run()) == {0: ("valid",)}


def test_a_record_whose_registry_entry_was_deleted_is_still_validated_again(faked: Stage) -> None:
    begun(faked, FIRST)
    send(faked, LONG, **values("a", 2**40))
    faked.run()
    subjects = faked.registry.subjects  # type: ignore[union-attr]
    subjects["elsewhere"] = subjects.pop(faked.subject)
    read_with(faked, FIRST, LONG)

    assert latest(faked.run()) == {0: ("valid",)}


def test_what_a_table_has_counted_as_a_default_stays_so_in_it_after_the_rename(faked: Stage) -> None:
    """Or speed, which has counted the default, and batch, which reads the name of now, would differ."""
    first = record(field("id", "string"), field("who", "string", default="nobody"))
    second = record(field("id", "string"), field("customer", "string", default="nobody", aliases=["who"]))
    begun(faked, first)

    def of(column: str) -> Latest:
        return Latest(
            name="things", inputs=(faked.topic.name,), keys=("id",), values=(column,),
            columns={"id": "id", column: column},
        )  # fmt: skip

    old = Fed(faked, of("who"), made_with=1)
    send(faked, second, at=MOMENT, id="a", customer="anna")
    old.run()
    assert old.shows() == {("a", "nobody")}
    read_with(faked, first, second)
    send(faked, first, at=MOMENT, id="b", who="ben")
    old.run()

    assert old.shows() == {("a", "nobody"), ("b", "ben")}
    new = Fed(faked, of("customer"), made_with=2)
    new.run()
    assert new.shows() == {("a", "anna"), ("b", "ben")}


def test_a_topic_is_validating_until_the_last_waiting_record_was_validated(
    faked: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "CHUNK_RECORDS", 1)
    begun(faked, FIRST)
    for one in range(3):
        send(faked, LONG, **values(f"r{one}"))
    faked.run()
    read_with(faked, FIRST, LONG)
    states: list[tuple[bool, str]] = []

    def note(log: Log, batch: int, rows: NewRows | None) -> None:
        states.append((rows is None, faked.ingests[-1].state))

    ingest = faked.ingest(then=note)
    faked.caught_up(ingest)

    assert states == [(True, "starting"), *[(False, "validating")] * 3]
    send(faked, LONG, **values("after"))
    faked.caught_up(ingest)
    assert states[4:] == [(False, "running")]
