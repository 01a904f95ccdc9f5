"""docs/json.md is what the code makes, names every command with `--json`, and results are as it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from tests.cli.json_shapes import filled, wrong
from twinlake.backup.archive import Backup
from twinlake.backup.check import Checked
from twinlake.backup.take import Taken
from twinlake.base.as_json import to_json
from twinlake.base.job import Job
from twinlake.batch.certify import Certified
from twinlake.batch.maintain import Maintained
from twinlake.batch.retention import Expiry
from twinlake.cli.app import build_app
from twinlake.cli.shapes.shared import SHARED
from twinlake.cli.shapes.value import Value, alternatives, keys, of
from twinlake.ingest.accept import Accepted
from twinlake.ingest.replay import Replayed
from twinlake.lake.catalog.audit_log import Act
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.paused import Paused
from twinlake.lake.catalog.release_log import Release
from twinlake.reference.commands import text as commands_text
from twinlake.reference.json_output import COMMANDS, text
from twinlake.releases.build import Built
from twinlake.releases.comparison import Comparison
from twinlake.releases.decide import Decision
from twinlake.releases.gate_checks import Gate
from twinlake.releases.promote import Switched
from twinlake.releases.retire import Retired
from twinlake.releases.timeline import Entry
from twinlake.server.pause_jobs import Pausing
from twinlake.server.release_jobs import Planned, Reported
from twinlake.server.reload_jobs import Reloaded

JOB_ID = {"job": "j"}
JOB_STATE = {**JOB_ID, "state": "succeeded"}
RESULTS: dict[str, tuple[type, dict[str, str]]] = {
    "plan": (Planned, {}), "build": (Built, {}), "promote": (Switched, {}), "rollback": (Switched, {}),
    "reject": (Decision, {}), "retire": (Retired, {}), "reload": (Reloaded, {}),
    "topic accept": (Accepted, {}),
    "verify": (Certified, JOB_STATE), "rebuild": (Certified, JOB_STATE), "replay": (Replayed, JOB_ID),
    "expire": (Expiry, JOB_STATE), "maintain": (Maintained, JOB_STATE), "pause": (Pausing, {}),
    "resume": (Pausing, {}), "jobs follow": (Job, {}), "jobs cancel": (Job, {}), "backup take": (Taken, {}),
    "backup verify": (Checked, {}), "restore": (Backup, {"home": "/h", "lake": "/h/lake"}),
}  # fmt: skip
"""By command, what its job gives, and what the command adds to that."""
LISTS = {"releases": Release, "jobs list": Job, "audit": Act, "backup list": Backup}
PARTS = {
    "job": Job, "certificate": Certificate, "release": Release, "release with changes": Entry, "gate": Gate,
    "paused": Paused, "switched": Switched, "certified": Certified, "backup": Backup,
}
BOTH = pytest.mark.parametrize("nothing", [False, True], ids=["everything", "nothing"])


def printed(made: Any) -> Any:
    return json.loads(json.dumps(to_json(made)))


def test_a_command_is_in_the_chapter_that_it_has_in_the_reference_of_commands() -> None:
    chapters = chapters_of(commands_text())

    wrong = {command for command, chapter in chapters_of(text()).items() if chapters[command] != chapter}

    assert wrong == set()


def chapters_of(page: str) -> dict[str, str]:
    """By command the heading above it."""
    found, chapter = dict[str, str](), ""
    for line in page.splitlines():
        if line.startswith("## "):
            chapter = line
        elif line.startswith("### twinlake "):
            found[line.split()[2]] = chapter
    return found


def test_every_command_with_json_is_documented() -> None:
    documented = {name.partition(" --")[0] for name in COMMANDS}

    assert documented == set(with_json("", typer.main.get_command(build_app())))


def with_json(name: str, command: Any) -> Iterator[str]:
    if any("--json" in one.opts for one in command.params):
        yield name
    for below, one in getattr(command, "commands", {}).items():
        if not one.hidden:
            yield from with_json(f"{name} {below}".strip(), one)


@BOTH
@pytest.mark.parametrize("command", RESULTS)
def test_the_result_of_a_job_has_the_documented_keys_and_types(command: str, nothing: bool) -> None:
    made, more = RESULTS[command]

    assert wrong(COMMANDS[command], printed({**more, **filled(made, nothing).to_json()})) == []


@BOTH
@pytest.mark.parametrize("command", LISTS)
def test_so_has_each_entry_of_a_list(command: str, nothing: bool) -> None:
    assert wrong(COMMANDS[command], printed([filled(LISTS[command], nothing).to_json()])) == []


@BOTH
@pytest.mark.parametrize("name", PARTS)
def test_so_have_shapes_that_several_share(name: str, nothing: bool) -> None:
    assert wrong(SHARED[name], printed(filled(PARTS[name], nothing).to_json())) == []


@BOTH
def test_a_certificate_s_summary_has_no_rows(nothing: bool) -> None:
    assert wrong(SHARED["certificate summary"], printed(filled(Certificate, nothing).summary())) == []


@BOTH
def test_a_comparison_and_a_gate_have_the_page_that_shows_them(nothing: bool) -> None:
    report = None if nothing else "report.html"
    gate, diff = (
        printed(Reported(found=filled(one, nothing), report=report).to_json()) for one in (Gate, Comparison)
    )

    assert wrong(COMMANDS["gate"], gate) == []
    assert wrong(COMMANDS["diff"], {"plan": "p", "equal": False, "diffs": [diff]}) == []


def test_what_differs_from_the_page_is_found() -> None:
    shape = Value(name="it", type="object", about="", keys=keys("""
        a   integer         a number
        b?  list of object  things
    """, b=keys("c  string or null  a text")))  # fmt: skip

    assert wrong(shape, {"a": 1}) == [] == wrong(shape, {"a": 1, "b": [{"c": None}]})
    assert wrong(shape, {"b": [{"c": 1}], "d": 1}) == [
        "it.d is not documented", "it.a is missing", "it.b.0.c is no string: 1",
    ]  # fmt: skip
    assert wrong(shape, {"a": True}) == ["it.a is no integer: True"]


def test_a_field_without_words_is_refused_and_so_are_words_without_a_field() -> None:
    with pytest.raises(TypeError, match=r"what Release\.number means is not said"):
        of(Release, "kind  how it came to be")
    with pytest.raises(TypeError, match="nothing: Retired has no such field"):
        of(Retired, "releases  r\nretired  r\nbusy  b\nliving  l\nnothing  n")
    with pytest.raises(TypeError, match=r"Built\.certificates has keys of its own: say which"):
        of(Built, "plan  p\ngreens  g\nbuilt  b\nrecords  r\nseconds  s\ncertificates  c")


def test_alternatives_are_told_from_what_is_inside() -> None:
    assert alternatives("list of (string or null) or null") == ["list of (string or null)", "null"]
    assert alternatives("(string or null)") == ["string", "null"]
