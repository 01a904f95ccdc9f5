"""The first release: the tables as they are defined, made live once, however often it is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.answers import Answers, Ended
from tests.project import OURS, TABLES
from twinlake.base.errors import DifferenceError
from twinlake.cli import first_release as module
from twinlake.cli.first_release import ensure_release
from twinlake.config.settings import Settings
from twinlake.definitions.loader import Loaded
from twinlake.server.client import LakeClient

DONE: dict[str, Any] = {"plan": {"id": "p"}, "build": {}, "promote": {}}


class Fresh(Answers):
    """The same lake server, which knows its status as well."""

    release: dict[str, Any] | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/status":
            return httpx.Response(200, json={"release": self.release, "lake_id": "lake"})
        return super().__call__(request)


def ensure(answers: Fresh, home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str | None, list[str]]:
    client = LakeClient("http://lake", "token", httpx.MockTransport(answers))
    monkeypatch.setattr(LakeClient, "of", staticmethod(lambda services, asker, **more: client))
    said: list[str] = []
    return ensure_release(Settings(home=home, in_project=OURS), said.append), said


def test_it_plans_builds_and_promotes_under_keys_that_name_the_steps(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Fresh(**DONE)

    made, said = ensure(answers, home, monkeypatch)

    plan, build, promote = answers.asked
    assert made == f"1 is live: {', '.join(table.name for table in TABLES)}"
    assert said == [f"first release: {kind}" for kind in ("plan", "build", "promote")]
    assert plan["params"]["definitions"] == {table.name: table.to_json() for table in TABLES}
    assert plan["key"].startswith("first:plan:lake:")
    assert build == {"kind": "build", "params": {"plan": "p"}, "key": "first:build:p"}
    assert promote == {
        "kind": "promote", "params": {"plan": "p", "approved_by": "twinlake up"}, "key": "first:promote:p"
    }  # fmt: skip


def test_asked_again_it_has_the_same_keys_and_with_other_definitions_another_plan(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again, other = (Fresh(**DONE) for _ in range(3))
    ensure(first, home, monkeypatch)
    ensure(again, home, monkeypatch)
    tables: Any = TABLES[0]
    monkeypatch.setattr(module, "load", lambda *_: Loaded(tables=(replace(tables, where="amount > 1"),)))
    ensure(other, home, monkeypatch)

    assert [one["key"] for one in first.asked] == [one["key"] for one in again.asked]
    assert first.asked[0]["key"] != other.asked[0]["key"]


def test_where_something_is_live_nothing_is_asked_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Fresh()
    answers.release = {"number": 1}

    assert ensure(answers, home, monkeypatch) == (None, [])
    assert answers.asked == []


def test_a_step_that_fails_ends_it_with_its_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = DifferenceError("speed and batch differ", "because", "look")
    answers = Fresh(**{**DONE, "build": Ended(error=error)})

    with pytest.raises(DifferenceError, match="speed and batch differ"):
        ensure(answers, home, monkeypatch)
    assert [one["kind"] for one in answers.asked] == ["plan", "build"]
