"""What the commands of a release print, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from jobs.tables import orders
from tests.cli.answers import PLAN, Answers, Ended, lines
from tests.releases.test_report import DIFF, GATE, NASTY
from twinlake.base.errors import DefinitionError, DifferenceError, NotFoundError, UsageError
from twinlake.base.job import Asker, Failed
from twinlake.cli import release
from twinlake.config.settings import Services, Settings
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Change, Plans
from twinlake.lake.catalog.release_log import Release
from twinlake.releases.promote import Refused
from twinlake.server.release_jobs import Planned
from twinlake.server.release_models import RetireParams

Twinlake = Callable[..., Result]

PLANNED = Planned(plan=PLAN).to_json()
UNCHANGED = Change(table="t", action="unchanged", fingerprint="f", blue="b-1", green="b-1")
EMPTY = replace(PLAN, id="c" * 12, changes=(UNCHANGED,))
BUILT = {
    "plan": PLAN.id, "greens": {"t": "g-2", "u": "g-3"}, "built": ["t"], "records": 5, "seconds": 1.0,
    "certificates": {"t": {"rows_compared": 12_345}, "u": None},
}  # fmt: skip
RELEASE = {
    "release": 2, "kind": "promote", "tables": {"t": "g-2"}, "positions": {"t": {"orders": 7}},
    "restores": None, "approved_by": "ann", "changed": True,
    "followed": True, "follow_seconds": 0.3, "follow_problem": None,
}  # fmt: skip
REFUSED = DifferenceError("the gate refuses plan b", "t lag", "mend it")
PROMOTE = ("promote", PLAN.id, "--approved-by", "ann")
BACK = "next: twinlake tables; twinlake rollback goes back"


def test_plan_says_what_changes_and_what_comes_next(twinlake: Twinlake) -> None:
    answers = Answers(plan=PLANNED)
    done = twinlake(answers, "plan", "--key", "k")

    assert done.exit_code == 0, done.output
    assert lines(done) == [
        "plan (job plan): succeeded",
        f"plan {PLAN.id}: from release 1",
        "t: changed",
        "    where: a -> b",
        "    to build: 1,000,000 records, 9.0 MB of log, about 0.5 min",
        f"next: twinlake build {PLAN.id}",
    ]
    (asked,) = answers.asked
    assert sorted(asked["params"]) == ["definitions", "git_commit"]
    assert sorted(asked["params"]["definitions"]) == ["latest_order", "orders", "sales_per_region"]
    assert asked["key"] == "k"


def test_plan_asks_for_the_tables_that_it_is_given(twinlake: Twinlake) -> None:
    answers = Answers(plan=PLANNED)
    twinlake(answers, "plan", "--table", "orders, latest_order")

    assert answers.asked[0]["params"]["tables"] == ["orders", "latest_order"]


def test_a_plan_says_what_it_leaves_as_it_is_and_why(twinlake: Twinlake) -> None:
    stays = replace(UNCHANGED, why=("was rolled back in release 5: too few", "to release it again: ..."))
    out = Change(table="u", action="left out", fingerprint=None, why=("not named",))
    some = replace(PLAN, changes=(stays, *PLAN.changes, out))
    none = replace(EMPTY, changes=(stays, out))

    answers = [Answers(plan=Planned(plan=one).to_json()) for one in (some, none)]
    said_of_some, said_of_none = (lines(twinlake(one, "plan"))[1:] for one in answers)

    told = ["t: unchanged (was rolled back in release 5: too few)", "    to release it again: ...",
            "u: left out (not named)"]  # fmt: skip
    assert said_of_some[-5:] == ["    to build: 1,000,000 records, 9.0 MB of log, about 0.5 min", *told,
                                f"next: twinlake build {PLAN.id}"]  # fmt: skip
    assert said_of_none == [f"plan {EMPTY.id}: nothing to change", *told]


def test_a_plan_that_changes_nothing_leads_nowhere(twinlake: Twinlake) -> None:
    done = twinlake(Answers(plan=Planned(plan=EMPTY).to_json()), "plan")

    assert lines(done)[1:] == [f"plan {EMPTY.id}: nothing to change, every table means what release 1 means"]


def test_a_definition_that_the_lake_server_refuses_is_told_with_its_file_and_line(twinlake: Twinlake) -> None:
    refused = DefinitionError("orders", "", 0, "where: there is no such column", "mend it")
    done = twinlake(Answers(plan=Ended(error=refused)), "plan")

    assert isinstance(done.exception, DefinitionError)
    assert (
        done.exception.to_json() == orders.TABLE.error("where: there is no such column", "mend it").to_json()
    )
    assert done.exception.what.startswith("jobs/tables/orders.py:")


def test_plan_as_json_is_the_plan_with_its_lines(twinlake: Twinlake) -> None:
    done = twinlake(Answers(plan=PLANNED), "plan", "--json")

    assert json.loads(done.stdout) == {**PLAN.to_json(), "lines": PLANNED["lines"]}


def test_build_says_what_was_built_and_how_far_it_is_certified(twinlake: Twinlake) -> None:
    answers = Answers(plan=PLANNED, build=BUILT)
    done = twinlake(answers, "build")

    assert lines(done) == [
        "build (job build): succeeded",
        "t g-2 built, certified over 12,345 rows",
        "u g-3 was there already",
        f"next: twinlake diff {PLAN.id}",
    ]
    assert answers.asked == [{"kind": "build", "params": {"plan": PLAN.id}}]


def test_build_of_nothing_says_so(twinlake: Twinlake) -> None:
    nothing = {**BUILT, "greens": {}, "built": [], "certificates": {}}
    done = twinlake(Answers(build=nothing), "build", PLAN.id)

    assert lines(done)[1:] == ["nothing to build", f"next: twinlake diff {PLAN.id}"]


def test_a_build_that_failed_ends_with_its_error(twinlake: Twinlake) -> None:
    done = twinlake(Answers(build=Failed(error=REFUSED, result=Refused(gate=GATE))), "build", PLAN.id)

    assert isinstance(done.exception, DifferenceError)
    assert done.exception.to_json() == REFUSED.to_json()


def test_a_command_without_a_plan_takes_the_newest(twinlake: Twinlake, home: Path) -> None:
    Plans(Settings(home=home).lake).save(replace(PLAN, id="0" * 12))
    answers = Answers(build=BUILT)
    twinlake(answers, "build")

    assert answers.asked == [{"kind": "build", "params": {"plan": "0" * 12}}]


def test_a_command_without_a_plan_says_when_there_is_none(twinlake: Twinlake, home: Path) -> None:
    (Settings(home=home).lake / "plans" / f"{PLAN.id}.json").unlink()
    done = twinlake(Answers(), "build")

    assert isinstance(done.exception, NotFoundError) and done.exception.exit_code == 2
    assert done.exception.what == "there is no plan yet"


def test_diff_ends_with_1_where_the_versions_differ(twinlake: Twinlake) -> None:
    answers = Answers(plan=PLANNED, build=BUILT, diff=DIFF.to_json())
    told = twinlake(answers, "diff")
    as_json = twinlake(answers, "diff", PLAN.id, "--json", "--key", "k")

    assert (told.exit_code, as_json.exit_code) == (1, 1)
    assert lines(told) == [
        "build (job build): succeeded",
        "diff t (job diff): succeeded",
        "t: blue b-1 and green g-2 at orders batch 7: different",
        "  99,999 rows the same, 1 changed, 2 only in blue, 0 only in green",
        "column  rows changed  total in blue  total in green",
        "sales   1             10.50          9.00",
        f"  changed: region={NASTY}; sales {NASTY} -> 1",
        "  only blue: region=x",
        f"report: http://sql/reports/{PLAN.id}",
        f"next: twinlake gate {PLAN.id}",
    ]
    printed = json.loads(as_json.stdout)
    assert printed == {"plan": PLAN.id, "equal": False, "diffs": [DIFF.to_json()]}
    assert printed["diffs"][0]["columns"][0]["blue_total"] == "10.50"
    assert answers.asked[-1] == {
        "kind": "diff",
        "params": {"table": "t", "blue": "b-1", "green": "g-2", "plan": PLAN.id},
        "key": "k/t",
    }


def test_diff_of_equal_versions_ends_with_0(twinlake: Twinlake, home: Path) -> None:
    equal = replace(DIFF, changed=0, only_blue=0, columns=(), samples=())
    Services(api_url="http://lake").save(Settings(home=home).services_file)  # nobody shows reports
    done = twinlake(Answers(build=BUILT, diff=equal.to_json()), "diff", PLAN.id)

    assert done.exit_code == 0
    assert lines(done)[2:] == [
        "t: blue b-1 and green g-2 at orders batch 7: equal",
        "  100,000 rows the same, 0 changed, 0 only in blue, 0 only in green",
        f"next: twinlake gate {PLAN.id}",
    ]


def test_what_raises_in_blue_is_named(twinlake: Twinlake) -> None:
    raising = replace(DIFF, blue_raises="column a raises")
    done = twinlake(Answers(build=BUILT, diff=raising.to_json()), "diff", PLAN.id)
    assert "  blue cannot be read, and counts as NULL where it raises: column a raises" in lines(done)


def test_columns_that_only_one_version_has_are_named(twinlake: Twinlake) -> None:
    other = replace(DIFF, columns_only_blue=("old",), columns_only_green=("new", "newer"))
    done = twinlake(Answers(build=BUILT, diff=other.to_json()), "diff", PLAN.id)

    assert lines(done)[4:6] == ["  columns only in blue: old", "  columns only in green: new, newer"]


def test_diff_without_a_changed_table_asks_nobody(twinlake: Twinlake, home: Path) -> None:
    Plans(Settings(home=home).lake).save(EMPTY)
    answers = Answers()
    done = twinlake(answers, "diff", EMPTY.id)

    assert (done.exit_code, answers.asked) == (0, [])
    assert lines(done) == [
        "nothing to compare: no table with a live version changes", f"next: twinlake gate {EMPTY.id}"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "error", "what"),
    [
        ((PLAN.id, "--table", "x"), NotFoundError, f"plan {PLAN.id} does not change table 'x'"),
        (("e" * 12,), NotFoundError, f"there is no plan {'e' * 12}"),
        (("../services",), UsageError, "'../services' is not the id of a plan"),
    ],
)
def test_diff_of_what_is_not_there_is_wrong_use(
    twinlake: Twinlake, arguments: tuple[str, ...], error: type, what: str
) -> None:
    done = twinlake(Answers(), "diff", *arguments)

    assert type(done.exception) is error
    assert (done.exception.what, done.exception.exit_code) == (what, 2)


@pytest.mark.parametrize(
    ("passed", "exit_code", "shown"),
    [(True, 0, f"ok     t witness: {NASTY}"), (False, 1, f"FAILED t witness: {NASTY}")],
)
def test_gate_shows_each_check_and_ends_with_1_if_one_failed(
    twinlake: Twinlake, passed: bool, exit_code: int, shown: str
) -> None:
    checks = (replace(GATE.checks[0], passed=passed), replace(GATE.checks[0], table="", passed=True))
    gate = replace(GATE, checks=checks).to_json()
    done = twinlake(Answers(gate=gate), "gate", PLAN.id)
    as_json = twinlake(Answers(gate=gate), "gate", PLAN.id, "--json")

    assert (done.exit_code, as_json.exit_code) == (exit_code, exit_code)
    rows = f"         {NASTY}"
    then = [f"next: twinlake promote {gate['plan']}"] if passed else []
    assert lines(done) == ["gate (job gate): succeeded", shown, rows, f"ok     witness: {NASTY}", rows, *then]
    assert json.loads(as_json.stdout) == gate


def test_release_goes_from_the_plan_to_readers_with_one_question(twinlake: Twinlake) -> None:
    passed = replace(GATE, checks=(replace(GATE.checks[0], passed=True),)).to_json()
    answers = Answers(plan=PLANNED, build=BUILT, diff=DIFF.to_json(), gate=passed, promote=RELEASE)
    done = twinlake(answers, "release", "--yes", "--approved-by", "ann", "--reason", "the totals are right")

    assert done.exit_code == 0, (done.output, done.exception)
    kinds = [one["kind"] for one in answers.asked]
    assert kinds == ["plan", "build", "diff", "gate", "promote"]
    assert answers.asked[-1]["params"] == {"plan": PLAN.id, "approved_by": "ann"}
    assert answers.askers[-1].why == "the totals are right"
    shown = [line for line in lines(done) if "succeeded" not in line]
    assert shown[0] == f"plan {PLAN.id}: from release 1" and "t g-2 built" in "".join(shown)
    assert shown[-4:] == ["release 2 is live (approved by ann)", "  t g-2 at orders batch 7",
                          "the SQL server followed in 0.3 s", BACK]  # fmt: skip

    answers = Answers(plan=PLANNED)
    refused = twinlake(answers, "release", "--approved-by", "ann").exception
    assert isinstance(refused, UsageError) and "--yes" in refused.remedy and answers.asked == []


@pytest.mark.parametrize(("passed", "said"), [(True, "n\n"), (True, "y\n"), (False, "y\n")])
def test_release_asks_after_the_gate_and_changes_nothing_without_a_yes(
    twinlake: Twinlake, monkeypatch: pytest.MonkeyPatch, passed: bool, said: str
) -> None:
    monkeypatch.setattr(release, "refuse_unanswered", lambda *_: None)
    gate = replace(GATE, checks=(replace(GATE.checks[0], passed=passed),)).to_json()
    answers = Answers(plan=PLANNED, build=BUILT, diff=DIFF.to_json(), gate=gate, promote=RELEASE)
    done = twinlake(answers, "release", "--approved-by", "ann", input=said)

    is_live = passed and said == "y\n"
    assert done.exit_code == (0 if is_live else 1), done.output
    assert (answers.asked[-1]["kind"] == "promote") == is_live
    assert (f"Make plan {PLAN.id} live?" in done.output) == passed
    assert ("nothing has changed for readers" in done.output) != is_live


def test_release_of_nothing_ends_with_the_plan(twinlake: Twinlake) -> None:
    answers = Answers(plan=Planned(plan=EMPTY).to_json())
    done = twinlake(answers, "release", "--yes", "--approved-by", "ann")

    assert (done.exit_code, [one["kind"] for one in answers.asked]) == (0, ["plan"])


def test_promote_tells_the_release_and_that_readers_have_it(twinlake: Twinlake) -> None:
    answers = Answers(promote=RELEASE)
    done = twinlake(answers, *PROMOTE)

    assert done.exit_code == 0, done.output
    assert lines(done) == [
        "promote (job promote): succeeded",
        "release 2 is live (approved by ann)",
        "  t g-2 at orders batch 7",
        "the SQL server followed in 0.3 s",
        BACK,
    ]
    assert answers.asked == [{"kind": "promote", "params": {"plan": PLAN.id, "approved_by": "ann"}}]
    assert json.loads(twinlake(answers, *PROMOTE, "--json").stdout) == RELEASE


def test_the_lake_server_is_told_who_asks_by_which_way_and_why(
    twinlake: Twinlake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "carla")
    answers = Answers(promote=RELEASE)
    twinlake(answers, *PROMOTE)
    twinlake(answers, *PROMOTE, "--reason", "the totals are right")

    carla = Asker(by="carla", via="cli")
    assert answers.askers == [carla, replace(carla, why="the totals are right")]


def test_reject_tells_that_nothing_has_changed(twinlake: Twinlake) -> None:
    rejected = {"plan": PLAN.id, "by": "ann", "at": "2026-01-31T12:00:00Z", "reason": "too few rows"}
    answers = Answers(reject=rejected)
    reject = ("reject", PLAN.id, "--rejected-by", "ann", "--reason", "too few rows")
    done, as_json = twinlake(answers, *reject), twinlake(answers, *reject, "--json")

    assert lines(done)[1:] == [f"plan {PLAN.id} is rejected; nothing has changed for readers"]
    params = {"plan": PLAN.id, "rejected_by": "ann", "reason": "too few rows"}
    assert answers.asked[0] == {"kind": "reject", "params": params}
    assert json.loads(as_json.stdout) == rejected


def test_promote_says_why_readers_do_not_have_it_yet(twinlake: Twinlake) -> None:
    away: dict[str, Any] = {**RELEASE, "followed": False, "follow_problem": "the SQL server [is] away"}
    done = twinlake(Answers(promote=away), *PROMOTE)

    assert (done.exit_code, lines(done)[-2:]) == (0, ["the SQL server [is] away", BACK])


def test_promote_of_what_is_live_already_says_so(twinlake: Twinlake) -> None:
    done = twinlake(Answers(promote={**RELEASE, "changed": False}), *PROMOTE)

    assert lines(done)[1:] == ["nothing to promote: release 2 means the same"]


def test_a_refused_promotion_shows_the_gate(twinlake: Twinlake) -> None:
    refused = Answers(promote=Failed(error=REFUSED, result=Refused(gate=GATE)))
    done = twinlake(refused, *PROMOTE)
    as_json = twinlake(refused, *PROMOTE, "--json")

    shown = [f"FAILED t witness: {NASTY}", f"         {NASTY}"]
    assert lines(done) == ["promote (job promote): failed", *shown]
    assert as_json.output.splitlines() == ["promote (job promote): failed"]
    for one in (done, as_json):
        assert isinstance(one.exception, DifferenceError) and one.exception.exit_code == 1
        assert one.exception.to_json() == REFUSED.to_json()


def test_rollback_names_the_release_it_restores(twinlake: Twinlake) -> None:
    answers = Answers(rollback={**RELEASE, "release": 3, "restores": 1})
    done = twinlake(answers, "rollback", "--to", "1", "--approved-by", "ann", "--reason", "too few")

    assert lines(done)[1:] == [
        "release 3 is live, the tables of release 1 again (approved by ann)",
        "  t g-2 at orders batch 7",
        "the SQL server followed in 0.3 s",
    ]
    assert answers.asked[0]["params"] == {"approved_by": "ann", "to": 1, "reason": "too few"}


def test_retire_tells_what_is_fed_no_more_and_what_is_kept(twinlake: Twinlake) -> None:
    answers = Answers(
        retire={"releases": [4, 5], "retired": ["t a-1"], "busy": ["t a-0"], "living": ["t b-2", "u c-1"]}
    )
    done = twinlake(answers, "retire", "--keep", "2")

    assert answers.asked[-1]["params"] == {"keep": 2}
    assert lines(done)[-3:] == [
        "retired t a-1", "left t a-0: it is being rebuilt, or merged",
        "1 versions retired, 2 maintained; releases kept: 4, 5",
    ]  # fmt: skip
    assert twinlake(answers, "retire", "--keep", "0").exit_code == 2


def test_how_many_releases_are_kept_is_the_lake_server_s_choice_unless_it_is_said(twinlake: Twinlake) -> None:
    answers = Answers(retire={"releases": [], "retired": [], "busy": [], "living": []})
    twinlake(answers, "retire")

    assert answers.asked[-1]["params"] == {}
    told = twinlake(answers, "retire", "--help").stdout.replace("│", " ")
    assert f"{RetireParams().keep} unless given" in " ".join(told.split())


def test_releases_are_listed_newest_first(twinlake: Twinlake, home: Path) -> None:
    lake = Settings(home=home).lake
    for number, restores in ((1, None), (2, None), (3, 1)):
        release_log.commit(lake, Release(
            number=number, kind="rollback" if restores else "promote", tables={"t": f"v-{number}"},
            created_at=f"2026-01-3{number - 1}T12:00:00Z", approved_by="[ann]", restores=restores,
            reason="too few" if restores else None,
        ))  # fmt: skip

    done = twinlake(Answers(), "releases", "--limit", "2")

    assert lines(done)[1:] == [
        "3        rollback of 1  2026-01-32T12:00:00  [ann]              too few  t v-3",
        "2        promote        2026-01-31T12:00:00  [ann]                       t v-2",
    ]
    told = json.loads(twinlake(Answers(), "releases", "--json").stdout)
    assert [(one["number"], one["reason"]) for one in told] == [(3, "too few"), (2, None), (1, None)]


def test_rollback_without_a_number_leaves_the_choice_to_the_lake_server(twinlake: Twinlake) -> None:
    answers = Answers(rollback={**RELEASE, "restores": 1})
    twinlake(answers, "rollback", "--approved-by", "ann")

    assert answers.asked[0]["params"] == {"approved_by": "ann"}
