"""A registry that was wiped, restored or tidied must not change what the bytes of a record mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apicurio import Apicurio
from tests.ingest.stage import Stage, frame, order
from twinlake.ingest.writer_schema import meant
from twinlake.topics.registry import Registry


def swapped(schema: dict[str, Any]) -> dict[str, Any]:
    """The same bytes are an event of it, with customer and region exchanged."""
    names = {"customer": "region", "region": "customer"}
    fields = [{**field, "name": names.get(field["name"], field["name"])} for field in schema["fields"]]
    return {**schema, "fields": fields}


@pytest.mark.faults
def test_an_id_that_a_wiped_registry_gives_to_another_schema_stops_the_topic(stage: Stage) -> None:
    registry = stage.registry
    assert isinstance(registry, Apicurio)
    registry.wipe()
    stage.schema_id = registry.register(stage.subject, stage.schema)
    stage.create(partitions=1)
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    registry.wipe()
    other = swapped(stage.schema)
    assert registry.register(stage.subject, other) == stage.schema_id
    stage.produce(frame(stage.schema_id, other, order("b")))

    stage.until(lambda: ingest.state == "stopped", ingest)
    again = stage.stopped()

    for stopped in (ingest, again):
        assert stopped.error is not None
        assert f"schema {stage.schema_id} of topic" in stopped.error.what
        assert "customer, region" in stopped.error.why and "region, customer" in stopped.error.why
        assert "restore the registry" in stopped.error.remedy
    assert ingest.log.end() == 1
    registry.wipe()
    registry.register(stage.subject, stage.schema)
    assert [row[3] for row in stage.verdicts(stage.run())] == ["valid", "valid"]


@pytest.mark.faults
def test_a_schema_that_was_registered_survives_a_kill(apicurio: Apicurio) -> None:
    """Otherwise the records that were sent with its id are invalid for ever."""
    sent = {"type": "record", "name": "Killed", "fields": [{"name": "a", "type": "long"}]}
    schema_id = apicurio.register("killed-value", sent)
    apicurio.stop()
    apicurio.start()

    assert Registry(apicurio.url).schema(schema_id) == sent


def test_words_and_defaults_do_not_make_another_schema(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.orders("a")
    faked.run()
    fields = [{**field, "doc": "other words"} for field in faked.schema["fields"]]
    faked.registry.subjects[faked.subject] = [(7, {**faked.schema, "doc": "more", "fields": fields})]  # type: ignore[union-attr]
    faked.orders("b")

    assert [row[3] for row in faked.verdicts(faked.run())] == ["valid", "valid"]


def test_records_of_a_schema_that_the_registry_lost_wait_until_it_is_back(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.orders("a")
    faked.run()
    lost = faked.registry.subjects.pop(faked.subject)  # type: ignore[union-attr]
    faked.orders("b")

    refused = faked.stopped()

    assert refused.error is not None and "no schema 7 any more" in refused.error.what
    faked.registry.subjects[faked.subject] = lost  # type: ignore[union-attr]
    assert [row[3] for row in faked.verdicts(faked.run())] == ["valid", "valid"]


def test_a_schema_whose_version_was_deleted_is_still_known_by_its_id(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.orders("a")
    faked.run()
    faked.registry.subjects["deleted"] = faked.registry.subjects.pop(faked.subject)  # type: ignore[union-attr]
    faked.orders("b")

    assert [row[3] for row in faked.verdicts(faked.run())] == ["valid", "valid"]


@pytest.mark.parametrize("silence", [{"down": True}, {"login": ("somebody", "else")}], ids=["away", "denied"])
def test_a_registry_that_does_not_answer_stops_no_topic_whose_schemas_are_known(
    faked: Stage, silence: dict[str, Any]
) -> None:
    faked.create(partitions=1)
    faked.orders("a")
    ingest = faked.caught_up(faked.ingest())
    vars(faked.registry).update(silence)
    faked.orders("b")
    faked.caught_up(ingest)

    assert [row[3] for row in faked.verdicts(ingest.log)] == ["valid", "valid"]


def test_what_decides_how_bytes_are_read_is_what_a_schema_means() -> None:
    text = """{"type": "record", "name": "R", "doc": "d", "fields": [
        {"name": "a", "type": {"type": "string", "avro.java.string": "String"}, "default": ""},
        {"name": "b", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}},
        {"name": "c", "type": {"type": "enum", "name": "E", "symbols": ["doc", "x"], "default": "x"}},
        {"name": "d", "type": ["null", {"type": "int", "logicalType": "time-millis"}], "order": "ignore"}]}"""

    assert meant(json.loads(text)) == {
        "type": "record", "name": "R", "fields": [
            {"name": "a", "type": {"type": "string"}},
            {"name": "b", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}},
            {"name": "c", "type": {"type": "enum", "name": "E", "symbols": ["doc", "x"]}},
            {"name": "d", "type": ["null", {"type": "int"}]},
        ],
    }  # fmt: skip
