"""Real processes against a lake server on a real port: exit codes, results on stdout, all else on stderr.

What the commands say in all their cases is told beside, in this process; here is how they end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.answers import ENDED, PLAN, Ended
from tests.cli.lake_server import TOKEN, Lake, listening
from tests.cli.test_batch import CERTIFIED, EQUAL, FAILED, NOT_EQUAL
from tests.cli.test_releases import BUILT
from tests.cli.test_services import RECREATED, TOPIC
from tests.cli.test_topics import ACCEPTED
from tests.project import PROJECT
from tests.releases.test_report import GATE
from twinlake.base.errors import BusyError, NotFoundError, TwinlakeError, UsageError
from twinlake.base.job import CancelledError
from twinlake.config.settings import Services, Settings
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.services.folders import folders_of
from twinlake.services.supervise import record
from twinlake.services.supervise.process import identity_of
from twinlake.services.supervise.record import Record

BUSY = BusyError("the lock of :t: is busy", "job 7 [rebuild] runs", r"wait, or see C:\[x]")
STALE = UsageError("there is nothing to accept", "it is the topic that the log knows", "go on")
PASSED = replace(GATE, checks=(replace(GATE.checks[0], passed=True, detail=":ok: [7]"),))
REFUSED = replace(GATE, checks=(replace(GATE.checks[0], detail=r"1:100:3 \[9]"),))
RETIRED = {"releases": [4], "retired": ["t a-1"], "busy": [], "living": ["t b-2"]}
RELEASE = Release(
    number=1, kind="promote", tables={"t": "v-1"}, created_at="2026-01-31T12:00:00Z", approved_by="ann"
)
FAILED_JOB = {
    **ENDED, "id": "verify", "kind": "verify", "params": {"table": "t"}, "state": "failed", "result": None,
    "error": BUSY.to_json(),
}  # fmt: skip

RESULTS: list[tuple[str, Lake, int, list[str], list[str]]] = [
    (
        "jobs list", Lake(verify={}), 0,
        ["job     kind    state      created              seconds  parameters and progress",
         "verify  verify  succeeded  2026-01-31T12:00:00  2.5      table=t"], [],
    ),
    (
        "jobs follow verify", Lake(verify={}), 0,
        ["job verify (verify) succeeded"], ["verify t (job verify): succeeded"],
    ),
    (
        "jobs cancel verify", Lake(verify=Ended(error=CancelledError("verify"), state="cancelled")), 0,
        ["job verify (verify) is cancelled"], [],
    ),
    ("topic accept orders", Lake(accept=ACCEPTED), 0, ["topic orders is accepted as epoch 2"], []),
    (
        "gate", Lake(gate=PASSED.to_json()), 0,
        ["ok     t witness: :ok: [7]", "         <script>alert('x')</script>"],
        ["gate (job gate): succeeded", f"next: twinlake promote {PASSED.plan}"],
    ),
    (
        "gate", Lake(gate=REFUSED.to_json()), 1,
        [r"FAILED t witness: 1:100:3 \[9]", "         <script>alert('x')</script>"],
        ["gate (job gate): succeeded"],
    ),
    (
        "build", Lake(build=BUILT), 0,
        ["t g-2 built, certified over 12,345 rows", "u g-3 was there already"],
        ["build (job build): succeeded", f"next: twinlake diff {PLAN.id}"],
    ),
    ("verify t", Lake(verify=CERTIFIED.to_json()), 0, [EQUAL], ["verify t (job verify): succeeded"]),
    (
        "retire", Lake(retire=RETIRED), 0,
        ["retired t a-1", "1 versions retired, 1 maintained; releases kept: 4"],
        ["retire (job retire): succeeded"],
    ),
    (
        "releases", Lake(), 0,
        ["release  kind     created              approved by  plan  reason  tables",
         "1        promote  2026-01-31T12:00:00  ann                        t v-1"], [],
    ),
]  # fmt: skip
AS_JSON: list[tuple[str, Lake, int, Any]] = [
    ("jobs follow verify", Lake(verify=Ended(error=BUSY)), 1, FAILED_JOB),
    ("verify t", Lake(verify=FAILED), 1, {"job": "verify", "state": "failed", **FAILED.result.to_json()}),
    ("releases", Lake(), 0, [RELEASE.to_json()]),
]  # fmt: skip
ERRORS: list[tuple[str, Lake, int, TwinlakeError]] = [
    ("jobs follow verify", Lake(verify=Ended(error=BUSY)), 1, BUSY),
    ("build --json", Lake(build=Ended(error=BUSY)), 1, BUSY),
    ("topic accept orders", Lake(accept=Ended(error=STALE)), 2, STALE),
    (
        "diff --table x", Lake(), 2,
        NotFoundError(f"plan {PLAN.id} does not change table 'x'",
                      "only tables with a live version can be", "see `twinlake plan`"),
    ),
]  # fmt: skip


def twinlake(home: Path, lake: Lake, *arguments: str) -> tuple[int, list[str], list[str]]:
    """Exit code and the lines of stdout and stderr of `python -m jobs` in this home, beside this lake."""
    settings = Settings(home=home)
    with listening(lake) as url:
        Services(api_url=url, api_token=TOKEN).save(settings.services_file)
        done = subprocess.run(
            [sys.executable, "-m", "twinlake", *arguments],
            cwd=PROJECT, env={**os.environ, "TWINLAKE_HOME": str(home)}, capture_output=True, text=True,
        )  # fmt: skip
    out, err = ([line.rstrip() for line in text.splitlines()] for text in (done.stdout, done.stderr))
    return done.returncode, out, err


def told(error: TwinlakeError) -> list[str]:
    """An error, as a person reads it."""
    return [error.what, f"why: {error.why}", f"do:  {error.remedy}"]


@pytest.mark.parametrize(
    ("arguments", "lake", "code", "out", "err"), RESULTS, ids=[case[0] for case in RESULTS]
)
def test_a_result_goes_to_stdout_and_the_rest_to_stderr(
    home: Path, arguments: str, lake: Lake, code: int, out: list[str], err: list[str]
) -> None:
    formats.acquire(Settings(home=home).lake)
    release_log.commit(Settings(home=home).lake, RELEASE)

    assert twinlake(home, lake, *arguments.split()) == (code, out, err)


def test_a_difference_ends_with_1_and_is_a_result(home: Path) -> None:
    code, out, err = twinlake(home, Lake(verify=FAILED), "verify", "t")

    assert (code, out[0], err) == (1, NOT_EQUAL, ["verify t (job verify): failed"])
    assert out[1:4:2] == [
        "  differs: region=r0, window_start=now (records_missing: fewer records)",
        "    batch {'sales': '[2]'}",
    ]


@pytest.mark.parametrize(("arguments", "lake", "code", "result"), AS_JSON, ids=[case[0] for case in AS_JSON])
def test_with_json_stdout_is_one_value_whatever_the_exit_code(
    home: Path, arguments: str, lake: Lake, code: int, result: Any
) -> None:
    formats.acquire(Settings(home=home).lake)
    release_log.commit(Settings(home=home).lake, RELEASE)

    ended, out, _ = twinlake(home, lake, *arguments.split(), "--json")

    assert (ended, json.loads("\n".join(out))) == (code, result)


@pytest.mark.parametrize(("arguments", "lake", "code", "error"), ERRORS, ids=[case[0] for case in ERRORS])
def test_an_error_goes_to_stderr_with_why_and_what_to_do(
    home: Path, arguments: str, lake: Lake, code: int, error: TwinlakeError
) -> None:
    ended, out, err = twinlake(home, lake, *arguments.split())

    assert (ended, err[-3:]) == (code, told(error))
    assert out == [] or json.loads("\n".join(out)) == error.to_json()
    assert bool(out) == ("--json" in arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("jobs follow nothing", "there is no job 'nothing'"),
        ("jobs cancel verify", "it has ended: succeeded"),
        ("retire --keep 0", "Invalid value for '--keep'"),
    ],
)
def test_wrong_use_ends_with_2_and_leaves_stdout_empty(home: Path, arguments: str, words: str) -> None:
    code, out, err = twinlake(home, Lake(verify={}), *arguments.split())

    assert (code, out) == (2, []) and words in " ".join(err)


def test_a_lake_server_that_is_away_ends_with_3(home: Path) -> None:
    with listening(Lake()) as url:
        pass
    Services(api_url=url, api_token=TOKEN).save(Settings(home=home).services_file)
    asked = [sys.executable, "-m", "twinlake", "--home", str(home), "verify", "t"]
    done = subprocess.run(asked, capture_output=True, text=True)

    what, why, remedy = done.stderr.splitlines()
    assert (done.returncode, done.stdout, what) == (3, "", "the lake server does not answer")
    assert why.startswith(f"why: {url}") and remedy.startswith("do:  see `twinlake status`")


@pytest.mark.parametrize(("topic", "code"), [(TOPIC, 0), ({**TOPIC, "error": RECREATED}, 1)])
def test_status_tells_of_the_parts_and_topics_and_ends_with_1_where_one_has_an_error(
    home: Path, topic: dict[str, Any], code: int
) -> None:
    folders = folders_of(Settings(home=home))
    me = identity_of(os.getpid())
    for part in ("supervisor", "lake"):
        record.save(folders, Record(part=part, state="ready", identity=me))
    lake = Lake()
    lake.topics = (topic,)

    ended, out, err = twinlake(home, lake, "status")

    assert (ended, err) == (code, [])
    assert out[1].split()[:4] == ["lake", "embedded", "ready", str(os.getpid())]
    assert out[4].split()[0] == "orders"
    assert out[6:] == (
        ["", "topic orders: the topic was recreated", "why: it has another id", "do:  accept it"]
        if code
        else []
    )
