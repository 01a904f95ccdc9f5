"""The unit for systemd: systemd takes it, and its commands, as they are written there, start and end all."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.processes import has_ended, of_home
from tests.project import OURS
from twinlake.cli.app import build_app
from twinlake.config.project import Project
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.supervise import control
from twinlake.services.supervise.unit import NAME, STOP_S, unit

AWKWARD = '100% "of" $HOME\'s'


def parsed(text: str) -> dict[str, list[str]]:
    """Every setting, as systemd reads it: in its order, quotes and all left as they are."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


def command(text: str) -> list[str]:
    """The words that systemd makes of a command."""
    return [word.replace("$$", "$").replace("%%", "%") for word in shlex.split(text)]


def made(home: Path, user: str = "root", project: Project = OURS, **environ: str) -> str:
    return unit(Settings(home=home, in_project=project), {"PATH": "/usr/bin", **environ}, user)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
@pytest.mark.parametrize("name", ["plain", AWKWARD])
def test_systemd_takes_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (tmp_path / NAME).write_text(
        made(tmp_path / "home", project=replace(OURS, root=folder), JAVA_HOME=f"/opt/{name}")
    )

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / NAME], capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_systemd_would_say_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(made(tmp_path / "home").replace("Type=forking", "Type=frking"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / NAME], capture_output=True)
    assert b"frking" in done.stderr


def test_a_path_is_one_word_whatever_is_in_it(tmp_path: Path) -> None:
    found = parsed(made(tmp_path, project=replace(OURS, root=Path("/opt") / AWKWARD)))

    for name, ends in (("ExecStart", "up"), ("ExecStop", "down")):
        assert command(found[name][0])[-5:] == [
            "--home", str(tmp_path), "--project", f"/opt/{AWKWARD}", ends,
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("home", "user", "there", "not_there"),
    [
        ("/srv/twinlake", "twinlake", {"CapabilityBoundingSet"}, set()),
        ("/srv/twinlake", "root", set(), {"CapabilityBoundingSet"}),
        ("/home/ben/data", "ben", set(), {"ProtectHome"}),
        ("/tmp/data", "ben", set(), {"PrivateTmp"}),
    ],
)
def test_nothing_is_closed_that_the_services_write(
    home: str, user: str, there: set[str], not_there: set[str]
) -> None:
    settings = Settings(home=Path(home), in_project=OURS, jars=Path("/srv/jars"))
    found = parsed(unit(settings, {}, user))

    every = {"NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", *there}
    assert every - not_there <= set(found) and not not_there & set(found)
    assert not set(found) & {"RestrictNamespaces", "SystemCallFilter", "MemoryDenyWriteExecute"}
    assert found["OOMPolicy"] == ["continue"] and found["User"] == [user]


def test_systemd_waits_for_as_long_as_down_may_take() -> None:
    assert STOP_S > 2 * control.TURN_S


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["unit", *arguments])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TWINLAKE_PROJECT", "TWINLAKE_HOME"):
        monkeypatch.setenv(name, str(OURS.root))
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_no_setting_of_the_shell_is_in_it_but_their_names_are_said(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINLAKE_KAFKA_PASSWORD", "a-secret")
    monkeypatch.setenv("TWINLAKE_KAFKA_USERNAME", "somebody")
    monkeypatch.setenv("TWINLAKE_KAFKA_SECURITY", "SASL_SSL")
    monkeypatch.setenv("TWINLAKE_KAFKA_BOOTSTRAP_SERVERS", "kafka:9093")
    monkeypatch.setenv("CLOUD_ACCESS_TOKEN", "of the shell")

    done = run()

    assert done.exit_code == 0, done.output
    assert not any(one in done.output for one in ("a-secret", "somebody", "of the shell"))
    assert "TWINLAKE_KAFKA_PASSWORD, TWINLAKE_KAFKA_SECURITY" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--user", "no-such-account"], "there is no account"), (["--only", "lkae"], "no service lkae")],
)
def test_what_could_not_start_is_refused(here: Path, options: list[str], said: str) -> None:
    assert said in str(run(*options).exception)


@pytest.fixture
def as_systemd(here: Path) -> Callable[[str, str], subprocess.CompletedProcess[str]]:
    """A command of the unit in the environment that it says, without a way to new rights."""

    def do(text: str, name: str) -> subprocess.CompletedProcess[str]:
        found = parsed(text)
        environ = dict(shlex.split(one)[0].replace("%%", "%").split("=", 1) for one in found["Environment"])
        return subprocess.run(
            ["setpriv", "--no-new-privs", *command(found[name][0])],
            env={**environ, "HOME": str(Path.home())}, cwd=found["WorkingDirectory"][0],
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    return do


@pytest.mark.services
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")
def test_its_commands_start_the_broker_and_leave_nothing(
    here: Path, as_systemd: Callable[[str, str], subprocess.CompletedProcess[str]]
) -> None:
    text = run("--only", "broker").stdout
    file = Path(parsed(text)["PIDFile"][0])
    try:
        started = as_systemd(text, "ExecStart")
        assert started.returncode == 0 and "broker" in started.stdout, started.stderr
        supervisor = psutil.Process(int(file.read_text()))
        assert "supervisor" in " ".join(supervisor.cmdline())
        assert supervisor.environ().keys() & os.environ.keys() <= {
            "HOME", "JAVA_HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "PYTHONPATH", "TMPDIR", "USER",
        }  # fmt: skip
        assert as_systemd(text, "ExecStart").returncode == 0, "twice changes nothing"
        assert psutil.Process(int(file.read_text())) == supervisor
    finally:
        began = time.monotonic()
        ended = as_systemd(text, "ExecStop")
    assert ended.returncode == 0 and "ended broker" in ended.stderr, ended.stderr
    assert time.monotonic() - began < int(parsed(text)["TimeoutStopSec"][0]) / 3
    assert not file.exists() and of_home(here) == []
    assert has_ended(supervisor) and folders_of(Settings(home=here)).run.exists()
