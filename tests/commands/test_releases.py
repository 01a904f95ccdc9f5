"""What the commands of a release print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from jobs.__main__ import build_app
from jobs.commands import releases
from jobs.errors import DifferenceError
from jobs.releases.plan import Change, Plan
from jobs.server.client import LakeClient
from jobs.settings import Services, Settings
from tests.releases.test_report import DIFF, GATE

PLAN = Plan(
    id="b" * 12,
    release_before=1,
    changes=(
        Change(table="t", action="changed", fingerprint="f", blue="b-1", why=("where: a -> b",),
               records=1_000_000, bytes=9_000_000, minutes_estimate=0.5),
    ),
    definitions={},
    created_at="2026-01-31T12:00:00Z",
)  # fmt: skip
RELEASE = {
    "release": 2, "kind": "promote", "tables": {"t": "g-2"}, "positions": {"t": {"orders": 7}},
    "restores": None, "approved_by": "ann", "changed": True,
    "followed": True, "follow_seconds": 0.3, "follow_problem": None,
}  # fmt: skip


class Answers:
    """A lake server that has the result, or the error, of every kind of job at once."""

    def __init__(self, **results: Any) -> None:
        self.results, self.asked = results, []  # type: ignore[var-annotated]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            asked = json.loads(request.content)
            self.asked.append(asked)
            return httpx.Response(202, json=self._job(asked["kind"], asked["params"]))
        name = request.url.path.rsplit("/", 1)[1]
        if name == "jobs":
            return httpx.Response(200, json=[self._job("plan", {})])
        return httpx.Response(200, json=self._job(name, {}))

    def _job(self, kind: str, params: dict[str, Any]) -> dict[str, Any]:
        found = self.results[kind]
        failed = isinstance(found, DifferenceError)
        return {
            "id": kind, "kind": kind, "params": params, "progress": {}, "ended_at": "now",
            "started_at": "now",
            "state": "failed" if failed else "succeeded", "error": found.to_json() if failed else None,
            "result": getattr(found, "result", None) if failed else found,
        }  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings = Settings(home=tmp_path)
    Services(api_url="http://lake", sql_url="http://sql").save(settings.services_file)
    PLAN.save(settings.lake)
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, answers: Answers, *arguments: str) -> Any:
    client = LakeClient("http://lake", "token", httpx.MockTransport(answers))
    monkeypatch.setattr(releases, "_client", lambda settings: client)
    return CliRunner().invoke(build_app(), list(arguments))


def test_plan_says_what_changes_and_what_comes_next(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(plan=PLAN.to_json())
    done = run(monkeypatch, answers, "plan")

    assert done.exit_code == 0, done.output
    assert "where: a -> b" in done.stderr
    assert "1,000,000 records, 9.0 MB of log, about 0.5 min" in done.stderr
    assert f"twinlake build {PLAN.id}" in done.stderr
    assert sorted(answers.asked[0]["params"]["definitions"]) == ["latest_order", "orders", "sales_per_region"]


def test_diff_ends_with_1_where_the_versions_differ(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(plan=PLAN.to_json(), build={"greens": {"t": "g-2"}}, diff=DIFF.to_json())
    told = run(monkeypatch, answers, "diff")
    as_json = run(monkeypatch, answers, "diff", PLAN.id, "--json")

    assert (told.exit_code, as_json.exit_code) == (1, 1)
    assert "99,999 rows the same, 1 changed, 2 only in blue, 0 only in green" in told.stderr
    assert "http://sql/reports/" in told.stderr
    assert json.loads(as_json.stdout)["diffs"][0]["columns"][0]["blue_total"] == "10.50"
    assert answers.asked[-1]["params"] == {"table": "t", "blue": "b-1", "green": "g-2", "plan": PLAN.id}


def test_promote_tells_the_release_and_that_readers_have_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers(promote=RELEASE)
    done = run(monkeypatch, answers, "promote", PLAN.id, "--approved-by", "ann")

    assert done.exit_code == 0, done.output
    assert "release 2 is live (approved by ann)" in done.stderr
    assert "t g-2 at orders batch 7" in done.stderr
    assert "followed in 0.3 s" in done.stderr
    assert answers.asked[0]["params"] == {"plan": PLAN.id, "approved_by": "ann"}


def test_a_refused_promotion_shows_the_gate(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = DifferenceError("the gate refuses plan b", "t lag", "mend it")
    refused.result = {"gate": GATE.to_json()}  # type: ignore[attr-defined]
    done = run(monkeypatch, Answers(promote=refused), "promote", PLAN.id)

    assert isinstance(done.exception, DifferenceError) and done.exception.exit_code == 1
    assert "FAILED t lag: <script>" in done.stderr


def test_rollback_names_the_release_it_restores(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(rollback={**RELEASE, "release": 3, "restores": 1})
    done = run(monkeypatch, answers, "rollback", "--to", "1", "--approved-by", "ann")

    assert "release 3 is live, the tables of release 1 again" in done.stderr
    assert answers.asked[0]["params"] == {"approved_by": "ann", "to": 1}
