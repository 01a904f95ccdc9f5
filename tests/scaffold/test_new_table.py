"""A first table of every kind passes `check` at once, whatever the topics are like that it is made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from jsonschema import Draft201909Validator

from tests.longer import some
from tests.project import EXAMPLES, example_of
from twinlake.base.errors import UsageError
from twinlake.config.project import Project
from twinlake.definitions.loader import load
from twinlake.kinds.all import KINDS
from twinlake.kinds.sql_form.writing import KINDS as IN_SQL
from twinlake.kinds.sql_form.writing import as_json, plain
from twinlake.releases.check import Report, check
from twinlake.scaffold.contract_text import TopicTerms, topic_contract
from twinlake.scaffold.new_table import Made, of_sources, refuse_name
from twinlake.topics.contract import JSON, Column
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.contract_schema import contract_schema
from twinlake.topics.topic import load_topic, topic_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LISTED = (
    "aggregate", "events", "latest", "top_rows", "history", "trailing", "sessions", "interval_join",
    "as_of_join", "rolling", "union", "derived",
)  # fmt: skip
JOINS = ("interval_join", "as_of_join")
OF_ONE = tuple(kind for kind in LISTED if kind != "union")
TOPICS = {
    "usual": {"event_id": "string", "user_id": "bigint", "page": "string", "price": "decimal(12,2)",
              "at": "timestamp"},
    "app": {"page": "string", "user_id": "bigint", "at": "timestamp"},
    "bare": {"at": "timestamp"},
    "odd": {"select": "string", "from": "string", "final": "double", "window_start": "timestamp",
            "a__b": "string", "last": "string", "place": "bigint", "left": "boolean", "odd": "string",
            "current_date": "date", "records": "bigint", "valid_from": "timestamp", "at": "timestamp"},
    "nested": {"who": "struct<name:string,tags:array<string>>", "many": "array<struct<n:bigint>>",
               "scores": "map<string,bigint>", "inside": "struct<m:map<string,string>>", "raw": "binary",
               "at": "timestamp"},
}  # fmt: skip


def project_in(folder: Path) -> Project:
    """One with these topics in JSON."""
    project = Project(root=folder)
    for name, columns in TOPICS.items():
        found = tuple(Column(name=one, type=type_, required=one == "at") for one, type_ in columns.items())
        terms = TopicTerms(name=name, columns=found, format=JSON, event_time="at")
        write(project.contracts / f"{name}.yaml", topic_contract(terms))
    return project


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def made(project: Project, name: str, kind: str, *sources: str) -> Made:
    topics = {topic: load_topic(topic, project) for topic in topic_names(project)}
    return of_sources(name, kind, sources, topics, load(project).tables, "jobs/tables")


def add(project: Project, name: str, kind: str, *sources: str) -> None:
    """What the command writes."""
    found = made(project, name, kind, *sources)
    for file, text in found.files.items():
        write(project.tables / file, text)
    write(project.contracts / f"{name}.yaml", found.contract)


@pytest.mark.parametrize("kind", IN_SQL)
@pytest.mark.parametrize("topic", TOPICS)
def test_a_first_table_in_sql_is_the_one_in_python(tmp_path: Path, topic: str, kind: str) -> None:
    project = project_in(tmp_path)
    topics = {topic: load_topic(topic, project)}

    made = of_sources("t", kind, (topic,), topics, (), "jobs/tables", in_sql=True)
    for file, text in made.files.items():
        write(project.tables / file, text)

    found = {one.name: as_json(one, in_order=False) for one in load(project).sound()}
    assert found == {one.name: as_json(plain(one), in_order=False) for one in made.tables}


def checked(project: Project, spark: SparkSession) -> Report:
    return check([project], lambda: spark)


def faults(report: Report) -> list[str]:
    return [one.what for one in (*report.problems, *report.warnings)]


def test_there_is_a_first_definition_of_every_kind_of_the_library() -> None:
    assert sorted(LISTED) == sorted(KINDS)


@pytest.mark.parametrize("topic", some(["odd", "usual", "nested", "bare"]))
def test_a_first_table_of_every_kind_over_this_topic_is_sound(
    tmp_path: Path, spark: SparkSession, topic: str
) -> None:
    project = project_in(tmp_path)
    made_of = {kind: (topic, topic) if kind in JOINS else (topic,) for kind in OF_ONE}
    if topic == "bare":  # nothing to be joined on
        made_of = {kind: sources for kind, sources in made_of.items() if kind not in JOINS}
    for kind, sources in made_of.items():
        add(project, f"{kind}_of_{topic}", kind, *sources)

    report = checked(project, spark)

    assert faults(report) == []
    assert {one["name"] for one in report.tables} >= {f"{kind}_of_{topic}" for kind in made_of}


def test_a_first_table_over_tables_is_sound(tmp_path: Path, spark: SparkSession) -> None:
    project = project_in(tmp_path)
    add(project, "counts", "aggregate", "usual")
    add(project, "others", "aggregate", "usual")
    add(project, "newest", "latest", "usual")
    add(project, "near", "interval_join", "usual", "usual")
    add(project, "rows", "events", "usual")
    add(project, "lately", "rolling", "counts")
    add(project, "asof", "as_of_join", "kept_usual", "usual")
    for name in ("counts", "newest", "near", "rows", "lately"):
        add(project, f"more_{name}", "derived", name)
    add(project, "both", "derived", "counts", "others")

    report = checked(project, spark)

    assert faults(report) == []
    assert [one["reads"] for one in report.tables if one["name"] in ("asof", "both")] == [
        ["kept_usual"], ["counts", "others"],
    ]  # fmt: skip


def test_a_first_union_is_of_two_topics_or_two_tables_that_fit(tmp_path: Path, spark: SparkSession) -> None:
    project = project_in(tmp_path)
    add(project, "both", "union", "usual", "app")
    add(project, "again", "union", "both_usual", "both_app")

    report = checked(project, spark)

    assert faults(report) == []
    assert [one["reads"] for one in report.tables if one["name"] in ("both", "again")] == [
        ["both_usual", "both_app"], ["both_usual", "both_app"],
    ]  # fmt: skip
    add(project, "counts", "aggregate", "app")
    for sources, why in {
        ("usual", "bare"): "they have no column of one name and type",
        ("both_usual", "app"): "it shows tables as one, and app is a topic",
        ("both_usual", "counts"): "both_usual and counts differ in their",
    }.items():
        with pytest.raises(UsageError) as refused:
            made(project, "none", "union", *sources)
        assert why in refused.value.why


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_topic_of_the_gallery_can_be_begun_with(name: str) -> None:
    example = example_of(name)

    for topic in topic_names(example):
        for kind in (one for one in OF_ONE if one not in JOINS):
            assert made(example, "mine", kind, topic).tables[-1].name == "mine"


def test_a_rule_can_be_written_as_the_contract_s_head_shows_it(tmp_path: Path) -> None:
    found = made(project_in(tmp_path), "rows", "events", "usual").contract
    rules = re.findall(r"`([^`]+)`", found.partition("\nname:")[0])

    for rule in rules:
        text = f"schema: [{{properties: [{{name: page, {rule}}}]}}]"
        assert parse_contract(yaml.safe_load(text), name="rows", file="rows.yaml").rules, rule

    assert len(rules) == 3


def test_a_contract_lists_the_columns_with_a_place_for_what_each_means(tmp_path: Path) -> None:
    found = made(project_in(tmp_path), "rows", "events", "usual").contract

    assert Draft201909Validator(contract_schema()).is_valid(yaml.safe_load(found))
    assert found.splitlines()[-10:] == [
        line for one in ("event_id", "user_id", "page", "price", "at")
        for line in (f"      - name: {one}", "        description: ''")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "sources", "what", "why"),
    [
        ("aggregate", (), "it is not said what the table is made of", "topics: app, bare, nested, odd"),
        (
            "events",
            ("usual", "odd"),
            "a table of kind events is made of 1, not 2",
            "--from is given too often",
        ),
        (
            "IntervalJoin",
            ("usual",),
            "a table of kind interval_join joins two sources",
            "--from is given 1 times",
        ),
        ("as-of-join", ("usual", "bare"), "usual and bare cannot be joined", "bare: none"),
        ("latest", ("nothing",), "mine cannot be made of nothing", "nothing is not there"),
        (
            "sessions",
            ("counts",),
            "mine cannot be made of counts",
            "counts is a table, and this kind reads a topic",
        ),
        ("rolling", ("newest",), "no rolling can be made of newest", "no Aggregate in tumbling windows"),
        ("derived", ("counts", "bare"), "mine cannot be made of counts, bare", "bare is a topic"),
        ("derived", ("counts", "counts"), "mine cannot be made of counts twice", "of two tables"),
        ("derived", ("nothing",), "mine cannot be made of nothing", "no topic and no table of this name"),
        ("interval_join", ("counts", "usual"), "counts and usual cannot be joined", "counts: none"),
        ("window", ("usual",), "no table of kind 'window' can be begun", "there is none"),
    ],
)
def test_what_cannot_be_made_is_refused_with_what_there_is(
    tmp_path: Path, kind: str, sources: Sequence[str], what: str, why: str
) -> None:
    project = project_in(tmp_path)
    add(project, "counts", "aggregate", "usual")
    add(project, "newest", "latest", "usual")

    with pytest.raises(UsageError) as refused:
        made(project, "mine", kind, *sources)

    assert refused.value.what == what and why in refused.value.why and refused.value.remedy


def test_a_name_that_is_taken_is_not_given_to_a_table_beside_it(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    add(project, "mine_minutes", "aggregate", "usual")

    with pytest.raises(UsageError, match="there is a table mine_minutes already"):
        made(project, "mine", "rolling", "usual")


def test_a_broken_module_beside_it_does_not_matter(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    write(project.tables / "torn.py", "TABLE = (")
    write(
        project.tables / "lost.py",
        "from twinlake import Rolling\nTABLE = Rolling(name='lost', of='gone', last=('1 day',))\n",
    )

    assert [one.name for one in made(project, "mine", "rolling", "usual").tables] == ["mine_minutes", "mine"]


@pytest.mark.parametrize("name", ["", "a-b", "9a", "_a", "ü", "a b", "Counts", "usual", "../a"])
def test_a_name_that_cannot_be_a_table_s_is_refused(tmp_path: Path, name: str) -> None:
    project = project_in(tmp_path)
    add(project, "counts", "aggregate", "usual")

    with pytest.raises(UsageError):
        refuse_name(name, load(project).tables, topic_names(project))
