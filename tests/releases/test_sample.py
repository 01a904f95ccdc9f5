"""A changed definition is judged on a sample as a built version of it would be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.releases.lake import Lake, order
from tests.releases.promised import promised_lake
from tests.releases.sampled_tables import CHANGED, PROMISED, TABLES
from twinlake.base.errors import DefinitionError, NotFoundError, UsageError
from twinlake.base.job import Run
from twinlake.difference.pinned import only
from twinlake.releases.compare import compare_pinned

BATCHES = (range(60), range(60, 100), range(100, 130), range(130, 150))
JUDGED = ("spent", "newest", "buyers", "minutes", "hops", "lines", "regrets", "visits", "lately", "dearest",
          "prices")  # fmt: skip
ALL = 1_000_000


def records(numbers: Iterable[int]) -> list[dict[str, Any]]:
    return [order(number, customer=f"c{number % 7}") for number in numbers]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake with four batches of 60, 40, 30 and 20 orders, and a release of every table."""
    with promised_lake(spark, tmp_path_factory.mktemp("sample"), PROMISED) as made:
        made.promote(made.build(TABLES))
        for numbers in BATCHES:
            made.append(records(numbers))
        yield made


@pytest.fixture(scope="module")
def built(lake: Lake) -> str:
    """The plan of the changed tables, whose versions are built."""
    return lake.build(CHANGED)


def sample(lake: Lake, table: str, definitions: Mapping[str, Any] = CHANGED, **params: Any) -> dict[str, Any]:
    given = {name: one.to_json() for name, one in definitions.items()}
    return lake.do("sample", table=table, definitions=given, **params)


def figures(compared: Mapping[str, Any]) -> dict[str, Any]:
    """A comparison without the names of what was compared."""
    left = ("blue", "green", "report")
    return {name: value for name, value in compared.items() if name not in left}


@pytest.mark.parametrize("table", JUDGED)
def test_over_the_whole_log_it_says_what_the_diff_of_a_built_version_says(
    lake: Lake, built: str, table: str
) -> None:
    whole = sample(lake, table, records=ALL)
    diff = lake.do("diff", table=table, plan=built)

    assert figures(whole["comparison"]) == figures(diff) and not diff["equal"]
    assert (whole["sample"]["whole"], whole["sample"]["records"], whole["limits"]) == (True, 150, [])
    assert whole["comparison"]["green"] == {"version": "changed", "delta_version": None}
    assert whole["comparison"]["blue"]["version"] == whole["against"]["version"] == diff["blue"]["version"]


@pytest.mark.parametrize("table", ["spent", "newest", "buyers", "minutes", "regrets", "dearest"])
def test_by_keys_it_says_what_the_diff_says_of_these_keys(
    lake: Lake, built: str, spark: SparkSession, table: str
) -> None:
    by_keys = sample(lake, table, records=20, keys=3)
    drawn = spark.sql(
        "SELECT concat('c', id) AS customer FROM range(7) ORDER BY xxhash64(customer), customer LIMIT 3"
    )
    versions = [
        lake.server.lake.versions.get(table, lake.do("diff", table=table, plan=built)[side]["version"])
        for side in ("blue", "green")
    ]
    pins = lake.server.lake.versions.pin_together(versions, Run(id="pin"))
    blue, green = (
        (lake.server.lake.versions.opened(one), pin) for one, pin in zip(versions, pins, strict=True)
    )
    limited = compare_pinned(blue, green, lambda side: only(side, drawn))

    assert figures(by_keys["comparison"]) == figures(limited.to_json())
    taken = by_keys["sample"]
    assert (taken["by"], taken["keys"], taken["records"], taken["whole"]) == ("keys", 3, 20, False)
    assert sample(lake, table, records=20, keys=3)["comparison"] == by_keys["comparison"]
    assert by_keys["limits"] == [
        "Only rows of 3 keys were compared, drawn among those of the newest records."
    ]


def test_over_the_newest_batches_it_is_what_plain_python_makes_of_them(lake: Lake) -> None:
    found = sample(lake, "spent", records=55)
    seen = records((*BATCHES[2], *BATCHES[3]))
    old, new = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
    for one in seen:
        old[one["customer"]] += one["amount"]
        if one["status"] != "cancelled":
            new[one["customer"]] += one["amount"]
    compared, (column,) = found["comparison"], found["comparison"]["columns"]

    assert found["sample"]["topics"]["orders"] == {
        "first_batch": 3, "last_batch": 4, "records": 50, "begin": "2026-01-31T12:01:40Z",
        "end": "2026-01-31T12:02:29Z",
    }  # fmt: skip
    assert (found["sample"]["records"], found["sample"]["of_records"]) == (50, 150)
    assert compared["common"] == len(old) and compared["changed"] == sum(old[c] != new[c] for c in old) > 0
    assert (compared["only_blue"], compared["only_green"]) == (0, 0)
    assert [column["blue_total"], column["green_total"]] == [str(sum(old.values())), str(sum(new.values()))]
    assert {one["key"]["customer"]: (one["blue"]["spent"], one["green"]["spent"])
            for one in compared["samples"]} == {
        name: (str(old[name]), str(new[name])) for name in old if old[name] != new[name]
    }  # fmt: skip
    assert found["limits"] == [
        "Counts and totals are of 50 of 150 records, and no estimate for all of history.",
        "What is measured of a key is measured of its sampled records alone, in both versions.",
    ]


def test_why_and_what_a_build_would_cost_is_what_the_plan_says(lake: Lake) -> None:
    spent, buyers = (sample(lake, name) for name in ("spent", "buyers"))
    plan = {one["table"]: one for one in lake.plan(CHANGED)["changes"]}
    cost = {name: plan["spent"][name] for name in ("records", "bytes", "minutes_estimate", "history")}

    assert spent["why"] == ["where: nothing -> status <> 'cancelled'"]
    assert buyers["why"][-1] == "newest: where: nothing -> order_id < 145"
    assert "spent: where: nothing -> status <> 'cancelled'" in buyers["why"]
    assert spent["against"] == {"version": plan["spent"]["blue"], "release": 1}
    assert {name: spent["cost"][name] for name in cost} == cost and spent["cost"]["reaches_back"]


def test_a_definition_that_means_what_is_live_is_not_computed(lake: Lake) -> None:
    found = sample(lake, "paid")

    assert (found["changed"], found["equal"]) == (False, True)
    assert found["sample"] is None and found["comparison"] is None
    assert found["why"] == ["the definition means what is live"]


def test_nothing_is_left_of_it(lake: Lake, spark: SparkSession) -> None:
    def there() -> tuple[list[str], list[str], int]:
        folders = [*lake.path.glob("*"), *lake.path.glob("plans/*"), *lake.path.glob("tables/*/*")]
        views = [view.name for view in spark.catalog.listTables()]
        context: Any = spark.sparkContext._jsc
        return sorted(map(str, folders)), sorted(views), len(context.getPersistentRDDs())

    before = there()
    sample(lake, "buyers")
    sample(lake, "lately", records=20, keys=2)

    assert there() == before


def test_a_table_that_is_not_live_has_nothing_to_compare_with(lake: Lake) -> None:
    definitions = CHANGED | {"newer": replace(CHANGED["spent"], name="newer")}
    with pytest.raises(NotFoundError, match="table newer has no live version to compare with"):
        sample(lake, "newer", definitions)


def test_rows_that_are_records_have_no_keys_to_draw(lake: Lake) -> None:
    with pytest.raises(UsageError) as refused:
        sample(lake, "lines", keys=2)
    assert "made of one record" in refused.value.why and "--records" in refused.value.remedy


def test_keys_that_are_others_are_refused_and_rows_are_counted(lake: Lake) -> None:
    by_region = replace(TABLES["spent"], columns=TABLES["spent"].columns | {"customer": "region"})
    other = replace(
        TABLES["spent"], keys=("region",), columns=TABLES["spent"].columns | {"region": "region"}
    )
    renamed = sample(lake, "spent", TABLES | {"spent": by_region}, records=ALL, keys=100)
    rows = sample(lake, "spent", TABLES | {"spent": other}, records=ALL)

    assert (renamed["comparison"]["only_blue"], renamed["comparison"]["only_green"]) == (7, 5)
    assert (rows["comparison"]["only_blue"], rows["comparison"]["only_green"]) == (7, 5)
    with pytest.raises(UsageError, match="cannot be judged by some of its keys"):
        sample(lake, "spent", TABLES | {"spent": other}, keys=100)


def test_a_definition_that_raises_is_named_with_the_record(lake: Lake) -> None:
    inverse = "CAST(1 / amount AS decimal(12,2))"
    share = replace(TABLES["spent"], columns=TABLES["spent"].columns | {"amount": inverse})
    with pytest.raises(DefinitionError) as raised:
        sample(lake, "spent", TABLES | {"spent": share}, records=ALL)
    named = f"column amount ({inverse}) raises for orders (epoch 0, partition 0, offset 0)"
    assert named in raised.value.what
    assert "try_divide" in raised.value.remedy


def test_without_definitions_those_beside_the_lake_server_are_judged(lake: Lake) -> None:
    with pytest.raises(UsageError, match="table spent has no definition to judge"):
        lake.do("sample", table="spent")
