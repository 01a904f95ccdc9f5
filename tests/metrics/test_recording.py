"""What puts the alert rules to a record of a run tells one that fires too early, too late, or never."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.alarms import test_real, test_real_rules
from tests.metrics.recording import STEP_S, Fires, Key, Moment, any_of, check, grown, rules_with, still
from tests.metrics.test_alerts import RULES, needs_promtool
from tests.metrics.test_alerts import rules as all_rules

LABELS = frozenset({("instance", "lake"), ("job", "twinlake")})
UP: Key = ("up", LABELS)
LATE: Key = ("twinlake_table_freshness_seconds", LABELS | {("table", "sales")})
RESTARTS: Key = ("twinlake_service_restarts_total", LABELS | {("service", "registry")})
DOWN = Fires(alert="TwinlakeDown", is_true=any_of("up", lambda value: value == 0), for_s=60)
IS_LATE = Fires(alert="TwinlakeTableLate", is_true=any_of(LATE[0], lambda value: value > 300, table="sales"))
RESTARTED = Fires(alert="TwinlakeRestarts", is_true=grown(RESTARTS[0], 3, service="registry"))


def record() -> list[Moment]:
    """Five minutes: late from the tenth scrape to the twentieth, down from the twentieth for 80 seconds, and
    three restarts."""
    moments: list[Moment] = []
    for number in range(60):
        if 20 <= number < 36:
            moments.append({UP: 0.0})
            continue
        restarts = float(sum(number >= at for at in (5, 8, 12)))
        moments.append({UP: 1.0, LATE: 400.0 if 10 <= number < 20 else 1.0, RESTARTS: restarts})
    return moments


@needs_promtool
def test_each_fires_at_its_time_and_the_others_never(tmp_path: Path) -> None:
    fire = (DOWN, IS_LATE, RESTARTED)

    assert [one.at(record()) for one in fire] == [32 * STEP_S, 10 * STEP_S, 12 * STEP_S]
    assert check(record(), RULES, fire, ("TwinlakeStalled", "TwinlakeDisk"), tmp_path) == ""


@needs_promtool
@pytest.mark.parametrize(
    ("fires", "never"),
    [
        ((Fires(alert="TwinlakeDown", is_true=DOWN.is_true, for_s=70),), ()),
        ((Fires(alert="TwinlakeDown", is_true=DOWN.is_true, for_s=30),), ()),
        ((Fires(alert="TwinlakeStalled", is_true=IS_LATE.is_true),), ()),
        ((), ("TwinlakeDown",)),
    ],
    ids=["too early", "too late", "never", "it must not"],
)
def test_one_that_does_otherwise_is_told(
    tmp_path: Path, fires: Sequence[Fires], never: Sequence[str]
) -> None:
    assert "FAILED" in check(record(), RULES, fires, never, tmp_path)


def test_what_a_run_did_not_make_happen_is_no_proof() -> None:
    with pytest.raises(AssertionError, match="never became true"):
        DOWN.at(record()[:30])


@needs_promtool
def test_one_that_is_not_over_is_told(tmp_path: Path) -> None:
    """The restarts are of the last ten minutes; the record ends before."""
    assert check(record(), RULES, (DOWN,), (), tmp_path, over=("TwinlakeDown", "TwinlakeTableLate")) == ""
    assert "FAILED" in check(record(), RULES, (DOWN,), (), tmp_path, over=("TwinlakeRestarts",))


@needs_promtool
def test_rules_may_have_the_bounds_of_a_run(tmp_path: Path) -> None:
    strict = rules_with(tmp_path / "rules.yml", {"_freshness_seconds > 300": "_freshness_seconds > 500"})

    assert check(record(), strict, (), ("TwinlakeTableLate",), tmp_path) == ""


def test_what_stands_still_has_had_one_value_for_so_long() -> None:
    moments: list[Moment] = [{UP: value} for value in (1.0, 2.0, 2.0, 2.0, 3.0)]

    assert [still("up", 3)(moments, number) for number in range(5)] == [True, False, False, True, False]


def test_a_real_run_makes_each_rule_happen() -> None:
    made = [one.alert for one in (*test_real.FIRE, *test_real_rules.FIRE)]

    assert sorted(made) == sorted(one["alert"] for one in all_rules())
