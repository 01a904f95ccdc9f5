"""Every example: its files match, its definitions are sound, its sequences do not depend on how one asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.gallery.cuts import NOW, judged, sent
from tests.longer import some
from tests.oracle.gallery import EXAMPLES as ORACLES
from tests.project import EXAMPLES, GALLERY, OURS, SOURCES, TABLES, example_of, sequence
from twinlake.definitions.loader import ENDINGS
from twinlake.kinds.dependencies import ordered
from twinlake.kinds.kind import Kind
from twinlake.releases.check import Report, Sound, check_table
from twinlake.topics.contract_file import load_contract
from twinlake.topics.topic import load_topic, topic_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = [(example, topic) for example, topics in SOURCES.items() for topic in topics]
SHOWN = [(example, table) for example, tables in EXAMPLES.items() for table in tables]


def _names(value: object) -> str:
    return getattr(value, "name", str(value))


def test_every_example_has_tables_topics_and_an_oracle() -> None:
    folders = {path.name for path in GALLERY.iterdir()}

    assert EXAMPLES.keys() == SOURCES.keys() == ORACLES.keys() == folders


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_files_of_an_example_are_of_its_topics_and_tables(example: str) -> None:
    tables = {table.name for table in EXAMPLES[example]}
    folder = GALLERY / example / "jobs" / "tables"
    modules = {path.stem for ending in ENDINGS for path in folder.glob(f"*{ending}")}
    contracts = {path.stem for path in (GALLERY / example / "contracts").iterdir()}

    assert modules == tables
    assert set(topic_names(example_of(example))) == SOURCES[example].keys()
    assert contracts == tables | SOURCES[example].keys()


def test_no_name_is_used_twice_in_a_lake_that_has_all_of_them() -> None:
    names = [table.name for _, table in SHOWN] + [topic for _, topic in TOPICS]
    names += list({*topic_names(OURS), *(table.name for table in TABLES)})

    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(("example", "table"), SHOWN, ids=_names)
def test_a_table_reads_its_example_s_topics_and_the_tables_listed_before_it(
    example: str, table: Kind
) -> None:
    listed = [one.name for one in EXAMPLES[example]]

    assert set(table.inputs) <= SOURCES[example].keys()
    assert set(table.reads) <= set(listed[: listed.index(table.name)])
    assert table.place is not None and Path(table.place.file).stem == table.name


@pytest.mark.parametrize("example", some(EXAMPLES, 3))
def test_the_definitions_are_sound_and_agree_with_their_contracts(spark: SparkSession, example: str) -> None:
    topics = {name: load_topic(name, example_of(example)) for name in SOURCES[example]}
    report = Report()
    sound = Sound(lambda: spark)

    for table in ordered(EXAMPLES[example]):
        contract = load_contract(GALLERY / example / "contracts" / f"{table.name}.yaml")
        assert contract.keys == (table.view_keys if contract.keys else ())
        check_table(table, topics, contract, report, sound)

    assert report.problems == [] and report.warnings == []
    assert sound.tables.keys() == {table.name for table in EXAMPLES[example]}


@pytest.mark.parametrize(("example", "topic"), TOPICS)
def test_a_sequence_is_fixed_by_its_seed_however_many_are_asked_for(example: str, topic: str) -> None:
    now_ms = int(NOW.timestamp() * 1000)
    whole, pieces, other = (sequence(example, topic, seed=seed, run="r", schema_id=7) for seed in (5, 5, 6))

    values = whole.draw(300, now_ms).values
    cut = [value for count in (1, 0, 99, 200) for value in pieces.draw(count, now_ms).values]

    assert values == cut
    assert values != other.draw(300, now_ms).values


@pytest.mark.parametrize(("example", "topic"), TOPICS)
def test_every_record_counts_once_and_some_are_late_repeated_tied_or_out_of_order(
    example: str, topic: str
) -> None:
    loaded = load_topic(topic, example_of(example))
    contract = loaded.contract
    assert contract.event_time and contract.late_after and (contract.unique or contract.change_data)
    records = sent(example, topic, seed=3, count=1_000)

    valid = judged(example, topic, records)

    distinct = set(zip(records.keys, records.values, strict=True))
    assert len(valid) == len(distinct) < 1_000
    if contract.unique:
        assert len({record[contract.unique] for record in valid}) == len(valid)
    times = [record[contract.event_time] for record in valid]
    assert len(set(times)) < len(times) and times != sorted(times)
    lags = [record["timestamp"] - time for record, time in zip(valid, times, strict=True)]
    assert 5 < sum(lag > contract.late_after for lag in lags) < 60
    assert min(lags) >= timedelta(0) and all(time < datetime(2026, 2, 2, tzinfo=UTC) for time in times)
    required = {one.name for one in contract.columns if one.required}
    for field in loaded.newest.fields:
        has_null = any(record[field.name] is None for record in valid)
        is_allowed = field.nullable and field.name not in required
        assert has_null == is_allowed, f"{field.name}: some are NULL where that is allowed"
