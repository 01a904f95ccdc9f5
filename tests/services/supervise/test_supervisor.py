import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.project import OURS
from tests.services.supervise import dummies
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.config.project import Project
from twinlake.config.settings import Services, Settings
from twinlake.config.values import Values
from twinlake.services import lake as lake_part
from twinlake.services.folders import Folders
from twinlake.services.part import Context
from twinlake.services.ports import Ports
from twinlake.services.supervise import control, record, supervisor
from twinlake.services.supervise.process import marked
from twinlake.services.upgrade import state as upgrade

PROJECT = Path(__file__).resolve().parents[3]


class Home:
    """One state folder with a supervisor of dummy parts."""

    def __init__(self, path: Path) -> None:
        self.settings = Settings(home=path, in_project=OURS)
        self.folders = Folders(home=path)
        self.folders.make()
        self._supervisors: list[subprocess.Popen[bytes]] = []

    def supervise(self, *parts: str) -> subprocess.Popen[bytes]:
        record.want(self.folders, parts)
        program = "tests.services.supervise.dummies"
        command = [sys.executable, "-m", program, "--home", str(self.settings.home)]
        self._supervisors.append(subprocess.Popen(command, cwd=PROJECT))
        return self._supervisors[-1]

    def wait(self, part: str, holds: Callable[[record.Record], bool]) -> record.Record:
        def found() -> record.Record | None:
            now = record.load(self.folders, part)
            return now if holds(now) else None

        return wait_for(f"the record of {part}", found, 30)

    def ready(self, part: str, other_than: int = 0) -> int:
        found = self.wait(
            part, lambda r: r.state == "ready" and r.identity is not None and r.identity.pid != other_than
        )
        assert found.identity is not None
        return found.identity.pid

    def close(self) -> None:
        control.bring_down(self.settings, lambda name: None)
        for one in self._supervisors:
            one.wait(10)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setattr(control, "all_parts", dummies.parts)
    made = Home(tmp_path / "home")
    yield made
    made.close()


def test_a_part_that_dies_is_started_again(home: Home) -> None:
    home.supervise("first")
    pid = home.ready("first")

    os.kill(pid, signal.SIGKILL)

    home.ready("first", other_than=pid)
    assert record.load(home.folders, "first").restarts == 1


def test_a_supervisor_adopts_what_still_lives_after_its_predecessor_was_killed(home: Home) -> None:
    first = home.supervise("first")
    pid = home.ready("first")
    first.kill()
    first.wait()
    forgotten = replace(record.load(home.folders, "first"), note="")
    record.save(home.folders, forgotten)

    home.supervise("first")

    home.wait("first", lambda r: r.note == "here")  # the second one has asked the part itself
    assert home.ready("first") == pid
    assert len(marked(home.folders.mark("first"))) == 1


def test_a_second_supervisor_of_the_same_home_ends_at_once(home: Home) -> None:
    home.supervise("first")
    home.ready("first")

    assert home.supervise("first").wait(20) == 1


def test_a_part_waits_for_what_it_needs_and_says_why_it_cannot_start(home: Home) -> None:
    (home.settings.home / "allowed").unlink(missing_ok=True)
    home.supervise("first", "second")

    failed = home.wait("second", lambda r: r.error is not None)

    assert failed.error is not None
    assert failed.error["why"] == "nobody allowed it"
    (home.settings.home / "allowed").touch()
    home.ready("second")


@pytest.mark.parametrize("also", [(), ("first", "second")])
def test_a_part_that_only_comes_after_another_starts_where_that_one_cannot(
    home: Home, also: tuple[str, ...]
) -> None:
    """It is refused, or nobody has asked for it."""
    home.supervise("third", *also)

    assert home.ready("third")
    assert bool(record.load(home.folders, "second").failures) == bool(also)


def test_a_part_is_described_with_its_answer_its_note_and_what_is_wrong_with_it(home: Home) -> None:
    home.supervise("first")
    pid = home.ready("first")

    (described,) = control.describe(home.settings)

    shown = {name: described[name] for name in ("part", "pid", "answers", "answer", "note")}
    assert shown == {"part": "first", "pid": pid, "answers": True, "answer": "here", "note": "sleeps in run"}
    assert described["error"]["what"] == "it limps"


def test_down_leaves_no_process_even_after_the_supervisor_was_killed(home: Home) -> None:
    (home.settings.home / "allowed").touch()
    supervisor = home.supervise("first", "second")
    home.ready("second")
    supervisor.kill()
    supervisor.wait()
    ended: list[str] = []

    control.bring_down(home.settings, ended.append)

    assert ended == ["second", "first"]
    assert marked(home.folders.mark("first")) + marked(home.folders.mark("second")) == []


def test_services_json_lists_every_address_and_only_its_owner_can_read_it(home: Home) -> None:
    home.supervise("first")
    home.ready("first")

    file = home.settings.services_file
    services = Services.load(file)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "" not in json.loads(file.read_text()).values()
    assert len(services.api_token) >= 32
    for secret in (services.api_token, services.airflow_password):
        for path in home.settings.home.rglob("*"):
            if path.is_file() and secret in path.read_text(errors="replace"):
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_addresses_and_secrets_stay_when_everything_is_started_again(home: Home) -> None:
    home.supervise("first")
    home.ready("first")
    before = home.settings.services_file.read_text()
    control.bring_down(home.settings, lambda name: None)

    home.supervise("first")
    home.ready("first")

    assert home.settings.services_file.read_text() == before


def test_what_starts_again_has_the_settings_of_the_supervisors_start(tmp_path: Path) -> None:
    """A lake server that died after an edit came back with the other lake, and read all topics into it."""
    file, folders = tmp_path / "twinlake.toml", Folders(home=tmp_path)
    folders.make()
    (tmp_path / "ca.pem").write_text("an authority")
    file.write_text(
        '[lake]\nuri = "file:///srv/one"\n[airflow]\nurl = "https://airflow"\nca_file = "ca.pem"\n'
    )
    started = supervisor.with_active_settings(Settings(home=tmp_path, in_project=OURS))
    file.write_text('[lake]\nuri = "file:///srv/two"\n')

    again = Settings(home=tmp_path, active_file=started.file)

    assert again.lake == Path("/srv/one") == Settings(home=tmp_path, active_file=started.active_file).lake
    assert again.values.airflow.ca_file == tmp_path / "ca.pem", "relative paths begin where they did"
    file.unlink()
    later = supervisor.with_active_settings(Settings(home=tmp_path, in_project=OURS))
    assert later.values == Values() and later.lake == tmp_path / "lake"


def test_the_lake_server_is_told_which_settings_are_in_force(home: Home) -> None:
    settings = supervisor.with_active_settings(home.settings)
    context = Context(
        settings=settings, folders=home.folders, ports=Ports(home.folders.run / "ports.json"),
        java_home=Path("/java"), services=Services(),
    )  # fmt: skip
    (lake,) = lake_part.parts()
    assert lake.command

    words = lake.command(context).arguments

    assert words[words.index("--settings") + 1] == str(home.folders.run / "twinlake.toml")


def test_two_that_ask_at_once_both_get_what_they_asked_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each took the list of wanted parts, added its own and wrote it: the other's were forgotten."""
    together, wanted = threading.Barrier(2), record.wanted

    def slow(folders: Folders) -> set[str]:
        found = wanted(folders)
        with suppress(threading.BrokenBarrierError):
            together.wait(0.5)
        return found

    monkeypatch.setattr(record, "wanted", slow)
    monkeypatch.setattr(control, "check_prerequisites", lambda *_: None)
    monkeypatch.setattr(control, "_ensure_supervisor", lambda *_: None)
    monkeypatch.setattr(control, "_wait", lambda *_: iter(()))
    asked = [
        threading.Thread(target=lambda part=part: list(control.bring_up(home.settings, (part,), {}, print)))
        for part in dummies.parts()
    ]
    for one in asked:
        one.start()
    for one in asked:
        one.join()

    assert wanted(home.folders) == {"first", "second", "third"}


def test_up_begins_when_a_down_under_way_has_ended(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    ending = threading.Event()

    def end_slowly(*_: object) -> None:
        ending.set()
        time.sleep(0.5)
        order.append("down")

    monkeypatch.setattr(control, "_end_all", end_slowly)
    monkeypatch.setattr(control, "check_prerequisites", lambda *_: None)
    monkeypatch.setattr(control, "_ensure_supervisor", lambda *_: order.append("up"))
    monkeypatch.setattr(control, "_wait", lambda *_: iter(()))
    down = threading.Thread(target=lambda: control.bring_down(home.settings, lambda name: None))
    down.start()
    ending.wait()

    list(control.bring_up(home.settings, dummies.parts(), {}, print))

    down.join()
    assert order == ["down", "up"]
    monkeypatch.undo()


def test_up_that_has_waited_for_the_down_of_an_upgrade_starts_nothing_on_what_it_copies(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had looked whether there is an upgrade before one began."""
    monkeypatch.setattr(control, "check_prerequisites", lambda *_: None)
    refuse = partial(upgrade.refuse_start, home.folders)
    refuse()

    def end(*_: object) -> None:
        upgrade.State(step=upgrade.Step.KEEP, began_at="2026-01-31T12:00:00Z").save(home.folders)

    monkeypatch.setattr(control, "_end_all", end)
    up = control.bring_up(home.settings, dummies.parts(), {}, print, refuse=refuse)
    control.bring_down(home.settings, lambda name: None)

    with pytest.raises(UsageError, match="was not finished"):
        list(up)
    assert record.wanted(home.folders) == set() and not record.load(home.folders, "supervisor").alive


def test_up_of_another_project_is_refused_while_the_services_of_one_run(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "twinlake.toml").write_text("[project]\n")
    other = replace(home.settings, in_project=Project.load(tmp_path / "other"))
    monkeypatch.setattr(control, "check_prerequisites", lambda *_: None)
    home.supervise("first")
    home.ready("first")

    with pytest.raises(UsageError, match="is of another project") as refused:
        list(control.bring_up(other, dummies.parts()[:1], {}, print))

    assert refused.value.why == f"it was started for {OURS.root}"
    ready = control.bring_up(home.settings, dummies.parts()[:1], {}, print)
    assert [one.service for one in ready] == ["first"]
    assert refused.value.remedy.startswith("`twinlake down`, then `twinlake up`")
    control.bring_down(home.settings, lambda name: None)
    control._refuse_what_runs_otherwise(other)


def test_up_does_not_wait_for_what_a_down_has_ended(home: Home) -> None:
    Services().save(home.settings.services_file)

    with pytest.raises(UnreachableError) as told:
        list(control._wait(home.settings, home.folders, dummies.parts()[:2], {"first": 0, "second": 0}, 60.0))

    assert told.value.what == "first was ended before it was ready"


@pytest.mark.parametrize("content", ["", "[]", "\0" * 100])
def test_down_and_up_mend_addresses_that_nobody_can_read(home: Home, content: str) -> None:
    """As the error of every command says; the supervisor could not be started over such a file."""
    home.settings.services_file.write_text(content)

    control.bring_down(home.settings, lambda name: None)
    home.supervise("first")

    home.ready("first")
    assert home.settings.services().api_token
