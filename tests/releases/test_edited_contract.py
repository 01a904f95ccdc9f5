"""A rule of a topic's contract decides verdicts, once: no table has to be built again for another one."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.releases.lake import Lake
from tests.releases.promised import project_of
from tests.releases.test_derived import BUYERS, NEWEST, PROMISED, SPENT

TABLES = {one.name: one for one in (SPENT, NEWEST, BUYERS)}


def test_an_edited_rule_of_a_contract_changes_no_table_and_an_edited_lateness_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    project = project_of(tmp_path / "project", PROMISED)
    contract = project / "contracts" / "orders.yaml"

    def planned(*edits: tuple[str, str]) -> dict[str, str]:
        text = contract.read_text()
        for old, new in edits:
            assert old in text
            text = text.replace(old, new, 1)
        contract.write_text(text)
        lake = Lake(spark, tmp_path / "home", project=project)
        try:
            if not lake.server.status()["release"]:
                lake.promote(lake.build(TABLES))
            return {one["table"]: one["action"] for one in lake.plan(TABLES)["changes"]}
        finally:
            lake.stop()

    first = planned()
    rules = planned(
        ("version: 1.0.0", "version: 1.1.0"), ("- value: cancelled", "- value: more"),
        ("minLength: 1", "minLength: 1\n          maxLength: 61"), ("minimum: 0", "minimum: 1"),
        ("value: 21 days", "value: 22 days"), ("value: 1 hour", "value: 2 hours"),
    )  # fmt: skip
    lateness = planned(("value: 3 hours", "value: 4 hours"))

    assert first == rules == dict.fromkeys(TABLES, "unchanged")
    assert lateness == dict.fromkeys(TABLES, "changed")
