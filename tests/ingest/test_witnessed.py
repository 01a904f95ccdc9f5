"""A second decoder and evaluator of contracts finds what ingest has written, over hostile records."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.envelopes import as_json, avro, contract
from tests.ingest.asking import answered, differing
from tests.ingest.change_cases import ALIKE, ANNA, P7, REFUSED, SOUND, change
from tests.ingest.fed import contract_of, renamed
from tests.ingest.json_cases import AT, BROKEN, PROPERTIES
from tests.ingest.json_cases import SOUND as SOUND_JSON
from tests.ingest.stage import Stage, frame, order
from tests.ingest.test_avro_types import AVRO, made, promised
from tests.ingest.test_replay import JOB, mend, reading
from tests.ingest.test_verdicts import with_amount
from twinlake.lake.log import contracts
from twinlake.topics.contract import Rule
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import Topic, json_topic


def hostile(stage: Stage) -> list[bytes | None]:
    """Orders that are valid, late, too late, twice there, broken, or none."""
    now = datetime.now(UTC).replace(microsecond=0)

    def one(event_id: str, **changes: Any) -> bytes:
        return stage.framed(order(event_id, **changes))

    good = one("a")
    return [
        good, good, None, b"", b"\0\0\0", b'{"event_id": "a"}', b"\0" * 40,
        good[:1] + b"\xff\xff\xff\xff" + good[5:], good[:5], good[:-1], good + b"\0",
        good[:5] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", good[:5] + b"\x80\x80\x80\x80\x08aa",
        good[:5] + b"\xff" * 11, good.replace(b"anna", b"a\xff\xfea"), with_amount(good, 10**12),
        with_amount(good, 2**64 + 5), with_amount(good, -(10**11)), with_amount(one("max"), 10**12 - 1),
        one("b", amount=Decimal("-0.01")), one("b"), one("b"),
        one("c", amount=Decimal("-1"), region="", customer="", status="lost"),
        one("d", ordered_at=now + timedelta(minutes=20)), one("e", ordered_at=now + timedelta(minutes=4)),
        one("f", ordered_at=now - timedelta(days=22)), one("f", ordered_at=now - timedelta(hours=4)),
        one("f", ordered_at=now - timedelta(days=22)), one("nul\0byte", customer="\0"),
        one("☃", customer="é"),
    ]  # fmt: skip


@pytest.mark.usefixtures("way")
def test_hostile_records_of_several_schemas_have_the_same_fields_and_verdicts_by_both(stage: Stage) -> None:
    stage.create(partitions=2)
    stage.produce(*hostile(stage))
    stage.run()
    note = {"name": "note", "type": ["null", "string"], "default": None}
    rank = {"name": "rank", "type": "int", "default": 3}
    newer = {**stage.schema, "fields": [*stage.schema["fields"], note, rank]}
    newer_id = stage.registry.register(stage.subject, newer)
    noted = (order("n", note=None, rank=9), order("m", note="é", rank=9))
    values = [frame(newer_id, newer, one) for one in noted]
    stage.produce(*values, values[0], *hostile(stage)[:5], partition=1)
    stage.run()
    stage.adopt(newer)
    stage.produce(*values, *hostile(stage), key=None)
    log = stage.run()

    found = answered(stage, log)

    assert (found.verdict, differing(found), dict(found.unsure)) == ("equal", {}, {})
    assert found.compared == found.records == log.records(log.end()) == 70
    assert found.engine.startswith("fastavro ") and found.seed == 7 and found.cpu_s > 0


def test_json_and_keys_and_deletes_have_the_same_fields_and_verdicts_by_both(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.registry.down = True  # type: ignore[union-attr]
    name = faked.topic.name
    faked.topic = json_topic(name, contract_of(name, PROPERTIES, format="json"))
    faked.produce(*(text for text, _ in (*SOUND_JSON, *BROKEN)), None)
    faked.run()
    keyed = [{**one, "primaryKey": one["name"] == "number"} for one in PROPERTIES[:-4]]
    promises = contract_of(name, keyed, format="json", nullValues="delete", keyFormat="json")
    faked.topic = json_topic(name, promises)
    for key in (b'{"number": 7}', b'{"number": "7"}', b"7", None, b'{"number": 7}x'):
        faked.produce(None, b"{" + AT + b', "number": 7, "address": {"city": "Bonn"}}', key=key)
    log = faked.run()

    found = answered(faked, log)

    assert (found.verdict, differing(found), dict(found.unsure)) == ("equal", {}, {})
    assert found.compared == len(SOUND_JSON) + len(BROKEN) + 11 and found.engine == "json"
    assert len(contracts.eras(log.lake, name)) == 2


def test_every_type_of_avro_and_tombstones_have_the_same_fields_by_both(stage: Stage) -> None:
    name = renamed(stage)
    schema = parse_schema(AVRO, topic=name, number=1, file="schemas/things.v1.avsc")
    promises = contract_of(name, [promised(one.name, one.type) for one in schema.fields])
    promises = replace(promises, null_values="delete", key_format="string")
    stage.topic = Topic(name=name, contract=promises, schemas=(schema,))
    stage.create(partitions=1)
    schema_id = stage.registry.register(stage.subject, AVRO)
    sound = [made("a"), made("b", scores={}, before=[]), made("c", maybe=float("nan"), worth=Decimal(1))]
    values = [frame(schema_id, AVRO, one) for one in sound]
    stage.produce(*values, values[0].replace("Köln".encode(), b"\xff\xffln\xff"), values[0][:-2], None)
    stage.produce(None, key=b"\xff")
    log = stage.run()

    found = answered(stage, log)

    assert (found.verdict, differing(found), dict(found.unsure)) == ("equal", {}, {})
    assert found.compared == 7


@pytest.mark.parametrize("written", ["avro", "json"])
def test_changes_of_a_database_have_the_same_fields_and_verdicts_by_both(stage: Stage, written: str) -> None:
    name = renamed(stage)
    stage.create(partitions=1)
    promises = contract(name, "postgresql", **({"format": "json"} if written == "json" else {}))
    if written == "json":
        stage.topic = json_topic(name, promises)
        pairs = [one for first, second, _ in ALIKE.values() for one in (first, second)]
        values = [as_json(one, wrapped=wrapped) for one in (*SOUND.values(), *REFUSED.values(), *pairs)
                  for wrapped in (False, True)]  # fmt: skip
    else:
        schema_of = avro("postgresql")
        schema = parse_schema(schema_of, topic=name, number=1, file="schemas/people.v1.avsc")
        stage.topic = Topic(name=name, contract=promises, schemas=(schema,))
        schema_id = stage.registry.register(stage.subject, schema_of)
        changes = [
            SOUND["create"], SOUND["update"], SOUND["create"], change("d", P7, before=ANNA),
            REFUSED["missing:after"],
        ]  # fmt: skip
        values = [frame(schema_id, schema_of, one) for one in changes]
    stage.produce(*values, None, key=b'{"id": 1}')
    log = stage.run()

    found = answered(stage, log)

    assert (found.verdict, differing(found), dict(found.unsure)) == ("equal", {}, {})
    assert found.compared == len(values) + 1
    assert "duplicate" in {row[3] for row in stage.verdicts(log)}


def test_a_replayed_record_counts_by_its_latest_copy(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.create(partitions=1)
    with monkeypatch.context() as patched:
        patched.setattr(Rule, "broken_sql", lambda rule, sql: "true" if rule.code == "empty" else "false")
        stage.orders("a", "b", "b")
        mistaken = stage.run()
        wrong = answered(stage, mistaken)
    mend(stage, "lost")
    stage.orders("c", status="lost")
    ingest = reading(stage)
    ingest.replay((), JOB)
    ingest.stop()

    found = answered(stage, ingest.log)

    assert differing(wrong) == {f"0/0/{at}": {"verdict"} for at in range(3)}
    assert (found.verdict, differing(found)) == ("equal", {})
    assert [row[3] for row in stage.verdicts(ingest.log)].count("duplicate") == 1
    assert found.compared == 4
