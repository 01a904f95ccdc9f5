"""A contract that is made of a schema, or of nothing, is what a person would have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project import EXAMPLES, OURS, example_of
from twinlake.base.errors import UsageError
from twinlake.config.project import Project
from twinlake.scaffold.new_topic import Chosen, of_nothing, of_schema, refuse_name
from twinlake.topics.contract import JSON, Contract
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.schema import Schema, parse_schema
from twinlake.topics.topic import Topic, load_topic, topic_names

IN_SCHEMAS = [
    topic
    for project in (OURS, *map(example_of, EXAMPLES))
    for name in topic_names(project)
    if (topic := load_topic(name, project)).contract.format != JSON
]
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def contract(text: str, name: str) -> Contract:
    return parse_contract(yaml.safe_load(text), name=name, file=f"contracts/{name}.yaml")


def schema(**fields: Any) -> Schema:
    found = [{"name": name, "type": type_} for name, type_ in fields.items()]
    avro = {"type": "record", "name": "T", "fields": found}
    return parse_schema(avro, topic="things", number=1, file="schemas/things.v1.avsc")


@pytest.mark.parametrize("topic", IN_SCHEMAS, ids=lambda topic: topic.name)
def test_it_agrees_with_the_schema_and_with_the_contract_that_a_person_has_written(topic: Topic) -> None:
    theirs = topic.contract
    chosen = Chosen() if theirs.change_data else Chosen(event_time=theirs.event_time, id=theirs.unique)

    made = contract(of_schema(topic.newest, chosen).contract, topic.name)

    assert made.disagreement(topic.newest) is None
    assert (made.event_time, made.unique, made.change_data) == (
        theirs.event_time, theirs.unique, theirs.change_data,
    )  # fmt: skip
    assert [one.type for one in made.columns] == [field.type for field in topic.newest.fields]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"at": "long"}, "at is a long without a logicalType"),
        ({"at": ["null", MILLIS]}, "at may be null"),
        ({"a": MILLIS, "b": MILLIS}, "candidates: a, b"),
    ],
)
def test_a_schema_without_a_clear_event_time_is_refused_with_what_it_has(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        of_schema(schema(**fields), Chosen())

    assert said in refused.value.why and refused.value.remedy


def test_of_nothing_comes_a_topic_with_an_id_and_a_time_that_loads(tmp_path: Path) -> None:
    project = Project(root=tmp_path)
    project.contracts.mkdir()
    text = of_nothing("things", Chosen(event_time="seen_at")).contract
    (project.contracts / "things.yaml").write_text(text)

    topic = load_topic("things", project)

    assert topic_names(project) == ("things",)
    assert [(one.name, one.type) for one in topic.contract.columns] == [
        ("event_id", "string"), ("seen_at", "timestamp"),
    ]  # fmt: skip
    assert (topic.contract.unique, topic.contract.event_time) == ("event_id", "seen_at")
    assert text.startswith("# A topic in JSON to begin with.")


@pytest.mark.parametrize("name", ["", "Orders", "a.b", "a-b", "9a", "_a", "ü", "../a", "a\n"])
def test_a_name_that_cannot_be_a_topic_s_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a topic cannot be called"):
        refuse_name(name)
