"""Every long test is in one shard; what has been run is known by tree, and goes on where it stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any

import pytest

from tests import proof
from tests.promises import Promise
from tests.shards import ALWAYS, SHARDS, TESTS, choose, drawn, shard_of

PASSED = proof.Run("t1", "2030-01-01 00:00", 2, 60, 7, 3, [], {}, "5f0c9a3e77d1c0ffee")


def test_the_longest_path_decides() -> None:
    assert shard_of(PurePath("faults/test_jvm.py")) == "servers"
    assert shard_of(PurePath("faults/test_gallery.py")) == "gallery"
    with pytest.raises(KeyError, match="elsewhere"):
        shard_of(PurePath("elsewhere/test_jvm.py"))


def test_every_place_of_a_shard_exists() -> None:
    assert [place for places in SHARDS.values() for place in places if not (TESTS / place).exists()] == []


def test_a_long_test_that_no_shard_runs_is_an_error() -> None:
    config: Any = SimpleNamespace(option=SimpleNamespace(shard=None))

    def item(path: str, *markers: str) -> Any:
        return SimpleNamespace(path=TESTS / path, get_closest_marker=lambda name: name in markers)

    choose(config, [item("elsewhere/test_it.py"), item("kill/test_it.py", "faults")])
    for marker in ("faults", "cluster"):
        with pytest.raises(pytest.UsageError, match=r"elsewhere/test_it\.py has a long test"):
            choose(config, [item("elsewhere/test_it.py", marker)])


def test_a_shard_runs_its_long_tests_alone() -> None:
    def collected(*arguments: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "--collect-only", "tests/kill", "tests/tour", *arguments]
        done = subprocess.run(command, cwd=proof.PROJECT, capture_output=True, text=True)
        return [line.split("::")[0] for line in (done.stdout + done.stderr).splitlines() if "::" in line]

    assert {PurePath(file).parts[1] for file in collected("--shard=kills")} == {"kill"}
    assert {PurePath(file).parts[1] for file in collected("--shard=tour")} == {"tour"}
    assert collected("--shard=week") == collected("--shard=nope") == []


def test_a_commit_draws_always_the_same_shard_and_commits_draw_them_all() -> None:
    found = Counter(drawn(f"commit {number}") for number in range(1_000))
    assert set(found) == set(SHARDS) - set(ALWAYS) and min(found.values()) > 1_000 / len(SHARDS) / 3
    assert drawn("a") == drawn("a")


def test_the_tree_is_what_is_committed_but_for_what_is_written_down(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    git("init")
    (tmp_path / "docs").mkdir()
    for name in ("code.py", proof.KNOWN, proof.PAGE):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-m", "one")
    first = proof.tree(tmp_path)
    (tmp_path / proof.PAGE).write_text("2")
    assert proof.tree(tmp_path) == first
    (tmp_path / "code.py").write_text("2")
    with pytest.raises(SystemExit, match=r"code\.py"):
        proof.tree(tmp_path)
    git("add", ".")
    git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-m", "two")
    assert proof.tree(tmp_path) != first


def test_what_is_missing_is_what_did_not_pass_on_this_tree() -> None:
    known = {name: PASSED for name in proof.RUNS}
    assert proof.missing(known, "t1") == []
    assert proof.missing(known, "t2") == [*proof.RUNS]
    known |= {
        "kills": replace(PASSED, failed=["a::b"]),
        "store": replace(PASSED, passed=0, skipped={"a::c": "no jars"}),
    }
    del known["week"]
    assert sorted(proof.missing(known, "t1")) == ["kills", "store", "week"]
    known["kills"] = replace(known["kills"], date="2030-01-02 00:00")
    assert proof.missing(known, "t1") == ["week", "store", "kills"], "what ran longest ago comes first"
    shown = proof.page(known, "t1")
    assert "**Not whole**" in shown and "- kills: `a::b`" in shown and "- store: `a::c`: no jars" in shown
    assert "| week | week | never |" in shown
    assert "| kills | kill | 2030-01-02 00:00 | `t1` | 5f0c9a3e77d1 |" in shown


@pytest.mark.parametrize(
    "body, code, passed, failed, skipped",
    [
        ("def test_a(): ...", 0, 1, [], {}),
        ("def test_a(): assert 0\ndef test_b(): ...", 1, 1, ["test_it::test_a"], {}),
        ("import pytest\ndef test_a(): pytest.skip('why')", 0, 0, [], {"test_it::test_a": "why"}),
        ("def broken(", 2, 0, None, {}),
        ("", 5, 0, ["pytest ended with 5"], {}),
    ],
)
def test_a_run_is_read_from_what_pytest_reports(
    tmp_path: Path, body: str, code: int, passed: int, failed: list[str] | None, skipped: dict[str, str]
) -> None:
    file, report = tmp_path / "test_it.py", tmp_path / "report.xml"
    file.write_text(body)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    done = subprocess.run([*command, str(file)], cwd=tmp_path, capture_output=True)
    assert done.returncode == code
    found = proof.result(report, "t1", 1.4, 7, done.returncode)
    assert (found.passed, found.skipped, found.seconds) == (passed, skipped, 1)
    assert found.failed == failed if failed is not None else found.failed
    assert found.proves == (passed > 0 and not found.failed)


def test_it_has_what_holds_a_promise_and_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promise = Promise(
        "7", "It holds", "`held`", ("test_it.py::test_a", "test_it.py::test_b", "test_it.py::test_d")
    )
    monkeypatch.setattr(proof, "_promises", lambda: [promise])
    file, report = tmp_path / "test_it.py", tmp_path / "report.xml"
    file.write_text(
        "import pytest\n"
        "from tests.conftest import figure\n"
        "cases = pytest.mark.parametrize('n', [1, 2])\n"
        "@cases\ndef test_a(n, figure): figure(f'rows {n}', '7 of 8')\n"
        "@cases\ndef test_b(n): assert n == 1\n"
        "@cases\ndef test_c(n): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    code = subprocess.run(
        [*command, str(file)], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(TESTS.parent)}
    )
    found = proof.result(report, "t1", 1, 7, code.returncode)

    assert found.held == {"test_it.py::test_a": 2, "test_it.py::test_b": 1}
    assert found.figures == {"rows 1": "7 of 8", "rows 2": "7 of 8"}
    shown = proof.page({"test": found}, "t2")
    assert f"| 7 | `test_it.py::test_a` | test | {found.date} | `t1` (older) | 2 |" in shown
    assert "| 7 | `test_it.py::test_b` | test | it did not pass | `t1` (older) | |" in shown
    assert (
        "| 7 | `test_it.py::test_d` | not on record |" in shown
        and "- test (older) (failed): rows 1: 7 of 8" in shown
    )


def test_what_every_day_runs_of_a_test_does_not_stand_for_its_long_cases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test = "tests/kill/test_points.py::test_it"
    monkeypatch.setattr(proof, "_promises", lambda: [Promise("7", "It holds", "`held`", (test,))])
    known = {"test": replace(PASSED, held={test: 1})}

    assert f"| 7 | `{test}` | kill_points | never | | |" in proof.page(known, "t1")
    known["kill_points"] = replace(PASSED, failed=["tests.kill.test_points::test_it[2]"], held={test: 13})
    assert f"| 7 | `{test}` | kill_points | it did not pass | `t1` | |" in proof.page(known, "t1")
    for broke in ("pytest ended with -9", "::tests.kill.test_points"):
        known["kill_points"] = replace(PASSED, failed=[broke])
        assert f"| 7 | `{test}` | kill_points | it did not pass | `t1` | |" in proof.page(known, "t1")
    known["kill_points"] = replace(PASSED, held={test: 14})
    shown = proof.page(known, "t1")
    assert f"| 7 | `{test}` | test | 2030-01-01 00:00 | `t1` | 1 |" in shown
    assert f"| 7 | `{test}` | kill_points | 2030-01-01 00:00 | `t1` | 14 |" in shown


def test_what_hangs_is_ended_and_no_option_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing")
    asks = "import os, sys; sys.exit('PYTEST_ADDOPTS' in os.environ)"

    assert proof.ended([sys.executable, "-c", asks], 60) == 0
    assert proof.ended([sys.executable, "-c", "import time; time.sleep(600)"], 1) == -9


def test_a_tree_that_changes_while_a_shard_runs_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "PROJECT", tmp_path)
    monkeypatch.setattr(proof, "prove", lambda name, at: PASSED)
    monkeypatch.setattr(proof, "tree", iter(["t1", "t2"]).__next__)

    with pytest.raises(SystemExit, match="proves nothing"):
        proof.main()

    assert not (tmp_path / proof.KNOWN).exists()


def test_what_took_longer_than_a_shard_may_and_what_was_skipped_is_told() -> None:
    known = {name: PASSED for name in proof.RUNS}
    assert "Skipped tests: 0. Shards that took more than a quarter of an hour: none." in proof.page(
        known, "t1"
    )
    known["store"] = replace(PASSED, seconds=901, skipped={"a::b": "why"})
    assert "Skipped tests: 1. Shards that took more than a quarter of an hour: store." in proof.page(
        known, "t1"
    )


def test_a_run_that_left_no_report_failed(tmp_path: Path) -> None:
    assert not proof.result(tmp_path / "none.xml", "t1", 1, 7, -9).proves


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    assert proof.read(file) == {}
    file.write_text(proof.text({"kills": PASSED}, "t1"))
    assert proof.read(file) == {"kills": PASSED}
