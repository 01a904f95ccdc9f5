"""Parameters are what they are at every entrance of the lake server: nothing is read as something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from tests.unopened import unopened
from twinlake.base.strict import Plain
from twinlake.server.api import build_app

SOME: dict[str, dict[str, Any]] = {
    "rebuild": {"table": "t"}, "verify": {"table": "t"}, "maintain": {}, "accept": {"topic": "t"},
    "replay": {"topic": "t"}, "plan": {}, "build": {"plan": "p"}, "diff": {"table": "t"},
    "sample": {"table": "t"},
    "gate": {"plan": "p"}, "promote": {"plan": "p", "approved_by": "me"},
    "reject": {"plan": "p", "rejected_by": "me"}, "rollback": {"approved_by": "me"},
    "retire": {}, "changelog": {"table": "t", "topic": "c"}, "publish": {"table": "t"},
    "pause": {"name": "t", "by": "me"},
    "resume": {"name": "t", "by": "me"}, "reload": {}, "check": {"code": "c", "roots": ["/p"]},
    "backup": {}, "expire": {}, "restructure": {},
    "webhook": {"table": "t", "url": "https://example.com/changes"},
}  # fmt: skip
"""Of every kind of job, parameters that are right."""
NUMBERS = (("rollback", "to"), ("rollback", "live"), ("retire", "keep"), ("sample", "records"),
           ("sample", "keys"))  # fmt: skip
FLAGS = (("rebuild", "due"), ("rebuild", "repair"), ("verify", "due"), ("verify", "repair"),
         ("reload", "check"), ("expire", "check"), ("webhook", "stop"))  # fmt: skip
TEXTS = [
    *((kind, name) for kind, params in SOME.items() for name in params if name != "roots"),
    ("rebuild", "version"),
    ("rebuild", "from"), ("rebuild", "to"), ("verify", "version"), ("maintain", "table"), ("diff", "blue"),
    ("diff", "green"), ("diff", "plan"), ("pause", "reason"), ("expire", "topic"), ("webhook", "from"),
]  # fmt: skip


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    server = unopened(tmp_path_factory.mktemp("strict"))
    return TestClient(
        build_app(server, "secret"), headers={"Authorization": "Bearer secret"}, raise_server_exceptions=False
    )


def submitted(web: TestClient, kind: str, **params: Any) -> tuple[int, str]:
    """By the very JSON: what a client's library would refuse to send, others send."""
    body = json.dumps({"kind": kind, "params": {**SOME[kind], **params}})
    answer = web.post("/jobs", content=body, headers={"Content-Type": "application/json"})
    return answer.status_code, answer.json().get("why", "")


def test_every_number_of_64_bits_is_one() -> None:
    class Numbers(Plain):
        numbers: list[int]

    assert Numbers(numbers=[-(2**63), 2**63 - 1]).numbers == [-(2**63), 2**63 - 1]
    for beyond in (-(2**63) - 1, 2**63):
        with pytest.raises(ValidationError, match="beyond 64 bits"):
            Numbers(numbers=[beyond])


def test_every_kind_of_job_takes_what_is_right(web: TestClient) -> None:
    assert web.post("/jobs", json={"kind": "none"}).json()["remedy"] == f"known: {', '.join(sorted(SOME))}"

    assert {kind: submitted(web, kind)[0] for kind in SOME} == dict.fromkeys(SOME, 202)


@pytest.mark.parametrize(("kind", "name"), NUMBERS)
@pytest.mark.parametrize(
    "wrong", [True, 1.0, "1", 1.5, float("nan"), float("inf"), 0, -1, 2**63, 10**400, []]
)
def test_a_whole_number_is_nothing_else(web: TestClient, kind: str, name: str, wrong: Any) -> None:
    status, why = submitted(web, kind, **{name: wrong})

    assert (status, bool(why)) == (400, True)


@pytest.mark.parametrize(("kind", "name"), FLAGS)
@pytest.mark.parametrize("wrong", [1, 0, 1.0, "true", "yes", "", None])
def test_a_flag_is_true_or_false(web: TestClient, kind: str, name: str, wrong: Any) -> None:
    status, why = submitted(web, kind, **{name: wrong})

    assert (status, name in why) == (400, True)


@pytest.mark.parametrize(("kind", "name"), TEXTS)
@pytest.mark.parametrize("wrong", ["", "a\0b", 1, True, 1.0, ["t"], "x" * 100_000, "\ud800"])
def test_a_text_is_one_that_can_be_a_name(web: TestClient, kind: str, name: str, wrong: Any) -> None:
    status, why = submitted(web, kind, **{name: wrong})

    assert (status, bool(why)) == (400, True)


@pytest.mark.parametrize("wrong", [["a\0b"], [1], "empty", {"empty": 1}, [""]])
def test_reasons_are_a_list_of_texts(web: TestClient, wrong: Any) -> None:
    assert submitted(web, "replay", reasons=wrong)[0] == 400
    assert submitted(web, "replay", reasons=["empty"])[0] == 202


@pytest.mark.parametrize("wrong", [float("nan"), float("-inf"), 2**64, "a\0b", "\ud800"])
def test_nothing_inside_a_definition_is_what_no_store_keeps(web: TestClient, wrong: Any) -> None:
    assert submitted(web, "plan", definitions={"t": {"deep": [{"inside": wrong}]}})[0] == 400


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": 1}, {"kind": "plan", "key": 1}, {"kind": "plan", "key": ""}, {"kind": "plan", "key": "a\0"},
        {"kind": "plan", "params": []}, {"kind": "plan", "params": None}, {"kind": "plan", "more": 1}, [], 1,
    ],
)  # fmt: skip
def test_the_body_around_them_is_as_strict(web: TestClient, wrong: Any) -> None:
    assert web.post("/jobs", json=wrong).status_code == 400


@pytest.mark.parametrize("query", ["limit=1.0", "limit=true", "limit=1_0", "limit=+1", "limit=", "limit=0",
                                   "limit=١", "limit=9" + "9" * 5000])  # fmt: skip
def test_a_limit_is_written_in_plain_digits(web: TestClient, query: str) -> None:
    assert web.get(f"/jobs?{query}").status_code == 400
    assert web.get("/jobs?limit=10").status_code == 200


@pytest.mark.parametrize("query", ["wait=nan", "wait=inf", "wait=true", "wait=-1", "wait=61", "wait="])
def test_a_wait_is_so_many_seconds(web: TestClient, query: str) -> None:
    assert web.get(f"/jobs/any?{query}").status_code == 400


def test_the_same_key_with_true_and_with_1_is_no_job_twice(tmp_path: Path) -> None:
    """In Python `True == 1`: what passed for each other found each other's job."""
    web = TestClient(build_app(unopened(tmp_path), "secret"), headers={"Authorization": "Bearer secret"})
    first = web.post("/jobs", json={"kind": "retire", "params": {"keep": 1}, "key": "k"})

    again = web.post("/jobs", json={"kind": "retire", "params": {"keep": True}, "key": "k"})

    assert (first.status_code, again.status_code) == (202, 400)
