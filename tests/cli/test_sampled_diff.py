"""`twinlake diff --sample` with a lake: the lake server judges, and the command shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from jobs.tables import orders
from tests.cli.answers import Answers, Ended, lines
from tests.cli.json_shapes import filled, wrong
from tests.cli.test_sample_comment import CHANGE, UNCHANGED
from twinlake.base.errors import DefinitionError, NotFoundError, TwinlakeError, UsageError
from twinlake.cli.shapes.sampled import SAMPLED
from twinlake.releases.sampled import SampledChange, SampledTopic

Twinlake = Callable[..., Result]
TABLES = ["latest_order", "orders", "sales_per_region"]
DONE = "sample sales_per_region (job sample): succeeded"
NEXT = "next: twinlake plan, then twinlake build and twinlake diff, which count all of history"


def answers(change: SampledChange | Ended = CHANGE, live: list[str] = TABLES) -> Answers:
    """A lake server on which these tables are live."""
    found = Answers(sample=change if isinstance(change, Ended) else change.to_json())
    found.status = {"release": {"number": 3, "tables": dict.fromkeys(live, "b-1")}}
    return found


def asked_for(found: Answers) -> list[str]:
    assert {one["kind"] for one in found.asked} <= {"sample"}  # nothing is planned or built
    return [one["params"]["table"] for one in found.asked]


def test_the_definitions_as_they_are_written_go_to_the_lake_server(twinlake: Twinlake) -> None:
    found = answers()

    done = twinlake(
        found, "diff", "--sample", "sales_per_region", "--records", "5000", "--keys", "7", "--key", "k"
    )

    assert done.exit_code == 1, done.output
    (asked,) = found.asked
    definitions = asked["params"].pop("definitions")
    assert sorted(definitions) == TABLES and definitions["orders"] == orders.TABLE.to_json()
    assert asked == {
        "kind": "sample", "key": "k/sales_per_region",
        "params": {"table": "sales_per_region", "records": 5000, "keys": 7},
    }  # fmt: skip


def test_every_figure_is_shown_with_the_sample_that_it_is_of(twinlake: Twinlake) -> None:
    done = twinlake(answers(), "diff", "--sample", "sales_per_region")

    assert lines(done) == [
        DONE,
        "t against release 3 (b-1), over the newest 98,304 of 1,000,000 records: different",
        "    orders: 98,304 records, batch 12 to 40, 2026-01-31T12:00:00Z to 2026-01-31T13:00:00Z",
        "    where: nothing -> status <> 'cancelled'",
        "  in this sample 1,200 rows the same, 40 changed, 3 only before, 2 only now",
        "  columns only before: old",
        "column  rows changed  total before  total now",
        "sales   40            10.50         9.00",
        "  changed: region=north; sales 1.50 -> 0.00",
        "  only before: region=x",
        "  only now: region=y",
        "  Counts and totals are of 98,304 of 1,000,000 records, and no estimate for all of history.",
        "  to build it: 1,000,000 records, 81.0 MB of log, about 0.5 min",
        NEXT,
    ]


NEWEST = "the newest 98,304 of 1,000,000 records"
ONE = SampledTopic(first_batch=9, last_batch=9, records=5, begin="a", end="b")
NONE = SampledTopic(first_batch=0, last_batch=0, records=0, begin=None, end=None)


@pytest.mark.parametrize(
    ("taken", "size", "place"),
    [
        ({"by": "keys", "keys": 50}, f"all records of 50 keys, drawn in {NEWEST}", "keys of 98,304 records"),
        ({"whole": True}, "all 98,304 records", "98,304 records, batch 12 to 40, "),
        ({"topics": {"orders": ONE}}, NEWEST, "5 records, batch 9, a to b"),
        ({"topics": {"orders": NONE}}, NEWEST, "no records"),
    ],
)
def test_the_size_says_what_was_taken(
    twinlake: Twinlake, taken: dict[str, Any], size: str, place: str
) -> None:
    assert CHANGE.sample is not None
    change = replace(CHANGE, sample=replace(CHANGE.sample, **taken))

    said = lines(twinlake(answers(change), "diff", "--sample", "sales_per_region"))

    assert said[1] == f"t against release 3 (b-1), over {size}: different"
    assert said[2].startswith(f"    orders: {place}")


def test_of_a_pattern_the_tables_that_mean_what_is_live_are_left_out(twinlake: Twinlake) -> None:
    by_pattern, by_name = answers(UNCHANGED, TABLES[:2]), answers(replace(UNCHANGED, table="orders"))

    some = twinlake(by_pattern, "diff", "--sample", "*order*,sales_*")
    named = twinlake(by_name, "diff", "--sample", "orders")

    assert sorted(asked_for(by_pattern)) == TABLES[:2] and some.exit_code == named.exit_code == 0
    assert lines(some)[2:] == ["sales_per_region: it is new, there is nothing to compare it with"]
    assert lines(named)[1] == "orders: it means what release 3 (b-1) means: the definition means what is live"


def test_as_json_it_is_what_the_lake_server_says_of_each_table(twinlake: Twinlake) -> None:
    done = twinlake(answers(), "diff", "--sample", "orders,sales_per_region", "--json")

    printed = json.loads(done.stdout)
    assert wrong(SAMPLED, printed) == [] and done.exit_code == 1
    assert printed == {
        "equal": False, "against": "release 3", "compared": [CHANGE.to_json()] * 2, "refused": {}, "new": [],
        "removed": [],
    }  # fmt: skip


@pytest.mark.parametrize("nothing", [False, True], ids=["everything", "nothing"])
def test_the_page_says_what_the_lake_server_answers(nothing: bool) -> None:
    made = json.loads(json.dumps(filled(SampledChange, nothing).to_json()))

    whole = {
        "equal": True, "against": "release 3", "compared": [made], "refused": {"t": "why"}, "new": ["t"],
        "removed": ["t"],
    }  # fmt: skip
    assert wrong(SAMPLED, whole) == []


def test_a_table_that_cannot_be_judged_leaves_the_others_alone(twinlake: Twinlake) -> None:
    refused = UsageError("table orders cannot be judged by some of its keys", "it has none", "use --records")

    several = twinlake(answers(Ended(error=refused)), "diff", "--sample", "*", "--keys", "5")
    alone = twinlake(answers(Ended(error=refused)), "diff", "--sample", "orders", "--keys", "5")

    said = "what it shows is not known: table orders cannot be judged by some of its keys: it has none"
    assert several.exit_code == 3 and f"orders: {said}" in lines(several)
    assert isinstance(alone.exception, UsageError) and alone.exception.to_json() == refused.to_json()


def test_a_definition_that_the_lake_server_refuses_is_told_with_its_file_and_line(twinlake: Twinlake) -> None:
    refused = DefinitionError("orders", "", 0, "where: there is no such column", "mend it")

    done = twinlake(answers(Ended(error=refused)), "diff", "--sample", "*")

    assert isinstance(done.exception, DefinitionError)
    assert done.exception.what.startswith("jobs/tables/orders.py:")


@pytest.mark.parametrize(
    ("arguments", "error", "what"),
    [
        (("--records", "5"), UsageError, "--records needs --sample"),
        (("--keys", "5"), UsageError, "--keys needs --sample"),
        (("--records-from", "x"), UsageError, "--records-from needs --sample"),
        (("--against", "HEAD"), UsageError, "--against needs --sample"),
        (("--format", "markdown"), UsageError, "--format needs --sample"),
        (("--sample", "orders", "--against", "HEAD"), UsageError, "--against needs --records-from"),
        (("--sample", "oders"), NotFoundError, "there is no table 'oders'; did you mean orders?"),
    ],
)
def test_what_says_nothing_is_refused_and_nobody_is_asked(
    twinlake: Twinlake, home: Path, arguments: tuple[str, ...], error: type[TwinlakeError], what: str
) -> None:
    found = answers()
    refused = twinlake(found, "diff", *arguments).exception

    assert isinstance(refused, error) and refused.what == what and found.asked == []
