"""Runs what has not been run yet on this tree, shard by shard, and writes down what each has shown.

`proof.json` is what is known, `docs/proof.md` shows it to people. After an interruption it goes on with what
is missing; what failed runs again.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from xml.etree import ElementTree

from tests import promises
from tests.processes import killed
from tests.shards import SHARDS, shard_of
from twinlake.base.files import replace_file
from twinlake.base.version import commit_of

PROJECT = Path(__file__).parent.parent
KNOWN = "proof.json"
PAGE = "docs/proof.md"
EVERY_DAY = "test"
"""Not a shard: what `make test` runs."""
RUNS = (EVERY_DAY, *SHARDS)
SHARD_S = 15 * 60
"""What a shard may take on two cores."""
HANGS_S = 90 * 60
"""What takes longer is ended, and has failed: no time limit of a test ends what hangs outside of Python."""
CLEANS_UP_S = 120
"""So long who was interrupted may stop what it has started."""


@dataclass(frozen=True)
class Run:
    """One run of one shard. Nothing is proved unless something passed and nothing failed."""

    tree: str
    date: str
    cores: int
    seconds: int
    seed: int
    passed: int
    failed: list[str]
    skipped: dict[str, str]
    """Test -> why it did not run."""
    commit: str = ""
    """Where `git` has that tree; nothing of runs that were written down before this was."""
    held: dict[str, int] = field(default_factory=dict)
    """Test that a promise names -> how many cases of it passed."""
    figures: dict[str, str] = field(default_factory=dict)
    """What its tests have measured."""

    @property
    def proves(self) -> bool:
        return self.passed > 0 and not self.failed

    @property
    def broke_off(self) -> bool:
        """Whether it ended without saying of each of its tests what became of it."""
        return any("::" not in one or one.startswith("::") for one in self.failed)

    @property
    def did_not_pass(self) -> set[str]:
        """The tests of which a case failed or was skipped."""
        return {_test(case) for case in (*self.failed, *self.skipped)}


def tree(project: Path = PROJECT) -> str:
    """The hash of all that is committed, but for what is written down here.

    Raises:
        SystemExit: something is changed and not committed, so no hash would name what runs.
    """
    own = (KNOWN, PAGE)
    changed = [line for line in _git(project, "status", "--porcelain").splitlines() if line[3:] not in own]
    if changed:
        raise SystemExit(
            "what runs must be what is committed, or nobody could repeat it. Commit or put aside:\n"
            + "\n".join(changed)
        )
    files = [
        line for line in _git(project, "ls-files", "--stage").splitlines() if line.split("\t")[1] not in own
    ]
    return hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]


def read(path: Path) -> dict[str, Run]:
    """What is known of each shard; nothing where there is no file yet."""
    if not path.exists():
        return {}
    return {name: Run(**run) for name, run in json.loads(path.read_text())["runs"].items()}


def text(known: dict[str, Run], at: str) -> str:
    """What `read` reads."""
    runs = {name: asdict(known[name]) for name in RUNS if name in known}
    return json.dumps({"tree": at, "runs": runs}, indent=1) + "\n"


def missing(known: dict[str, Run], at: str) -> list[str]:
    """The shards that have proved nothing on this tree; first those that never ran, then the longest ago."""
    left = (name for name in RUNS if name not in known or known[name].tree != at or not known[name].proves)
    return sorted(left, key=lambda name: known[name].date if name in known else "")


def result(report: Path, at: str, seconds: float, seed: int, code: int) -> Run:
    """What pytest's XML report says of a run. One without, or that ended badly without a failure, failed."""
    passed, failed, skipped = 0, [], {}
    named = {test for promise in _promises() for test in promise.tests}
    held: Counter[str] = Counter()
    figures: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        name = f"{case.get('classname')}::{case.get('name')}"
        figures |= {one.get("name", ""): one.get("value", "") for one in case.iter("property")}
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif (why := case.find("skipped")) is not None:
            skipped[name] = why.get("message") or ""
        else:
            passed += 1
            held[_test(name)] += 1
    if code and not failed:
        failed.append(f"pytest ended with {code}")
    return Run(
        at, datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), os.cpu_count() or 1, round(seconds), seed, passed,
        failed, skipped, held={test: held[test] for test in sorted(held.keys() & named)},
        figures=figures,
    )  # fmt: skip


def page(known: dict[str, Run], at: str) -> str:
    """`docs/proof.md`: one row a shard, and what no run has shown."""
    left = missing(known, at)
    unproved = sum(len(run.skipped) for run in known.values())
    whole = "**Whole**: every shard passed" if not left else f"**Not whole**: {', '.join(left)} did not pass"
    long = [name for name in SHARDS if name in known and known[name].seconds > SHARD_S]
    lines = [
        "# What has been run",
        "",
        "`make proof` writes this page and `proof.json`, from which one can repeat a run: "
        "`make faults SHARD=name SEED=n`. "
        "A *shard* is a part of the tests that runs by itself; `test` is `make test`. A *tree* is the hash "
        "of all committed files but these two. A run on an older tree was of other files. `never`: no run "
        "of it was written down. *of* are the folders and files of `tests/` whose long tests a shard has: "
        "the longest path that fits decides ([all of them](../tests/shards.py)).",
        f"{whole} on the tree `{at}`. Skipped tests: {unproved}. "
        f"Shards that took more than a quarter of an hour: {', '.join(long) or 'none'}.",
        "",
        "| shard | of | when (UTC) | tree | commit | cores | minutes | passed | failed | skipped | seed |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in RUNS:
        of = ", ".join(SHARDS[name]) if name in SHARDS else "all but the long ones"
        if name in known:
            run = known[name]
            lines.append(
                f"| {name} | {of} | {run.date} | `{run.tree}`{_age(run, at)} | {run.commit[:12]} | "
                f"{run.cores} | {run.seconds / 60:.1f} | {run.passed} | {len(run.failed)} | "
                f"{len(run.skipped)} | {run.seed} |"
            )
        else:
            lines.append(f"| {name} | {of} | never | | | | | | | | |")
    failed = [f"- {name}: `{test}`" for name in RUNS if name in known for test in known[name].failed]
    skipped = [
        f"- {name}: `{test}`: {' '.join(why.split())}"
        for name in RUNS
        if name in known
        for test, why in known[name].skipped.items()
    ]
    figures = [
        f"- {name}{_age(known[name], at)}{'' if known[name].proves else ' (failed)'}: {what}: {value}"
        for name in RUNS
        if name in known
        for what, value in known[name].figures.items()
    ]
    lines += ["", "## Failed", "", *(failed or ["Nothing."])]
    lines += ["", "## Not proved, for it was skipped", "", *(skipped or ["Nothing."])]
    lines += ["", "## What was measured", "", *(figures or ["Nothing."])]
    lines += [
        "",
        "## Each promise",
        "",
        "By its number in [what is promised](guarantees.md): the tests that hold it, and when all cases "
        "of each last passed in a run. A test may have some for every day, in `test`, and others in a shard.",
        "",
        "| | test | shard | passed (UTC) | tree | cases |",
        "|---|---|---|---|---|---|",
        *(
            row
            for promise in _promises()
            for test in promise.tests
            for row in _held(promise.number, test, known, at)
        ),
    ]
    return "\n".join(lines) + "\n"


def _held(number: str, test: str, known: dict[str, Run], at: str) -> Iterator[str]:
    """One row for each run that has cases of the test: some of them may be for every day, the others long."""
    rows = []
    for name in _runs_of(test):
        run = known.get(name)
        told = f"| {number} | `{test}` | {name} |"
        if run is None:
            rows.append(f"{told} never | | |")
        elif test in run.did_not_pass or (run.broke_off and test not in run.held):
            rows.append(f"{told} it did not pass | `{run.tree}`{_age(run, at)} | |")
        elif test in run.held:
            rows.append(f"{told} {run.date} | `{run.tree}`{_age(run, at)} | {run.held[test]} |")
    yield from rows or [f"| {number} | `{test}` | not on record | | | |"]


def _runs_of(test: str) -> list[str]:
    """The runs that may have cases of it."""
    try:
        return [EVERY_DAY, shard_of(PurePath(test.partition("::")[0]).relative_to("tests"))]
    except (KeyError, ValueError):
        return [EVERY_DAY]


def _age(run: Run, at: str) -> str:
    return "" if run.tree == at else " (older)"


def _promises() -> list[promises.Promise]:
    return promises.promises(promises.PAGE.read_text())


def _test(case: str) -> str:
    """`tests/a/test_b.py::test_c` of `tests.a.test_b::test_c[d]`, as a report has it."""
    place, _, name = case.partition("::")
    return f"{place.replace('.', '/')}.py::{name.partition('[')[0]}"


def prove(name: str, at: str) -> Run:
    """Runs one shard, with its output where this process writes."""
    seed = random.SystemRandom().randrange(2**32)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--seed={seed}", f"--junitxml={report}"]
        command += ["-n", "2"] if name == EVERY_DAY else [f"--shard={name}"]
        began = time.monotonic()
        code = ended(command, HANGS_S)
        found = result(report, at, time.monotonic() - began, seed, code)
        return replace(found, commit=commit_of(PROJECT) or "")


def ended(command: list[str], seconds: float) -> int:
    """Its exit code, -9 of one that took longer. No option of the environment leaves a test out."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    process = subprocess.Popen(command, cwd=PROJECT, env=environment)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return killed(process)
    except KeyboardInterrupt:  # Ctrl-C reaches both
        try:
            process.wait(CLEANS_UP_S)
        except subprocess.TimeoutExpired:
            killed(process)
        raise


def main() -> int:
    at = tree()
    known = read(PROJECT / KNOWN)
    todo = missing(known, at)
    for number, name in enumerate(todo, 1):
        print(f">> {name} ({number} of {len(todo)})", flush=True)
        found = prove(name, at)
        if tree() != at:
            raise SystemExit(f"the tree changed while {name} ran, which proves nothing: begin again")
        known[name] = found
        replace_file(PROJECT / KNOWN, text(known, at))
        replace_file(PROJECT / PAGE, page(known, at))
    left = missing(known, at)
    print(f"not whole: {', '.join(left)}" if left else f"whole on {at}")
    return 1 if left else 0


def _git(project: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(project), *arguments], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
