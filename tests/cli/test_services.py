"""What `twinlake status` shows of the lake: topics, versions of both sorts, the release, its certificates."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.unopened import certificate, make_live, unopened
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.cli import status
from twinlake.cli.app import build_app
from twinlake.config.settings import Settings
from twinlake.lake.catalog.version import Health
from twinlake.services.folders import folders_of

PART = {
    "part": "lake", "state": "ready", "answers": True, "pid": 12, "restarts": 0, "answer": "http://lake",
    "error": None, "note": "", "given": False,
}  # fmt: skip
TOPIC = {
    "name": "orders", "state": "running", "error": None, "batch": 7, "epoch": 0,
    "ends": {"1": 2_000, "0": 3_000}, "records": 5_000,
    "counts": {"valid": 4_990, "invalid": 4, "duplicate": 3, "too_late": 2, "late": 1},
    "watermark": "2026-01-31T12:00:00Z", "lag_records": 12,
}  # fmt: skip
RECREATED = {"what": "the topic was recreated", "why": "it has another id", "remedy": "accept it"}
STORED = Health(
    table="sales", version="v-1", position={"orders": 1_007}, lag_records=0, lag_seconds=0.04, step=12,
    segment=3, watermark=1_700_000_000_000_000,
)  # fmt: skip
VIEW = Health(table="events", version="v-2", position={"orders": 7, "returns": 3})
NOTHING: dict[str, Any] = {
    "topics": [], "versions": [], "release": None, "certificates": [], "changelogs": [], "spark": None,
    "damaged": [], "paused": [],
}  # fmt: skip


def shown(capsys: pytest.CaptureFixture[str], part: dict[str, Any] = PART, **lake: Any) -> list[str]:
    told = {**NOTHING, **lake}
    status._show([part], told)
    status._show_problems(status.problems([part], told))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


def test_a_part_is_shown_with_its_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys) == [
        "service  is        state  pid  restarts  answer",
        "lake     embedded  ready  12   0         http://lake",
    ]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"answers": False}, "lake embedded does not answer 12 0 http://lake"),
        (
            {"answers": False, "state": "failed", "pid": None, "error": {"what": "it [died]"}},
            "lake embedded failed 0 it [died]",
        ),
        ({"note": "restarted"}, "lake embedded ready 12 0 http://lake; restarted"),
        ({"given": True, "pid": None}, "lake external ready 0 http://lake"),
    ],
)
def test_a_part_that_is_not_well_says_why(
    capsys: pytest.CaptureFixture[str], changed: dict[str, Any], words: str
) -> None:
    assert shown(capsys, {**PART, **changed})[1].split() == words.split()


def test_a_topic_is_shown_with_its_end_its_records_its_lag_and_what_became_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    head, row = shown(capsys, topics=[TOPIC])[2:]

    assert head.split() == [
        "topic", "state", "batch", "log", "end", "records", "lag", "valid", "invalid", "duplicate",
        "too_late", "ignored", "late", "watermark",
    ]  # fmt: skip
    assert row.split() == [
        "orders", "running", "7", "0:3000", "1:2000", "5,000", "12", "4,990", "4", "3", "2", "0", "1",
        "2026-01-31T12:00:00Z",
    ]  # fmt: skip


def test_a_topic_that_stopped_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    stopped = {**TOPIC, "state": "stopped", "error": RECREATED}

    row, *words = shown(capsys, topics=[stopped])[3:]

    assert row.split()[:3] == ["orders", "stopped", "7"]
    assert words == ["topic orders: the topic was recreated", "why: it has another id", "do:  accept it"]


def test_a_stored_version_is_shown_with_its_position_lag_step_and_segment(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert shown(capsys, versions=[asdict(STORED)])[2:] == [
        "table  version  position     lag  seconds  step  segment  state",
        "sales  v-1      orders:1007  0    0.0      12    3        maintained",
    ]


def test_a_version_of_a_view_kind_has_no_lag_no_step_and_no_segment(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert shown(capsys, versions=[asdict(VIEW)])[2:] == [
        "table   version  position             lag  seconds  step  segment  state",
        "events  v-2      orders:7, returns:3                               reads its logs",
    ]


def test_records_that_no_schema_can_read_are_shown_with_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = {"schema": 9, "records": 1_300, "reason": "unreadable_by_schema:n", "why": "it is a text",
           "remedy": "add a file"}  # fmt: skip
    told = shown(capsys, topics=[{**TOPIC, "unreadable": [one]}])

    assert told[-3:] == [
        "orders: 1,300 records of schema 9 are in quarantine (unreadable_by_schema:n)", "  it is a text",
        "  add a file",
    ]  # fmt: skip


def test_a_warning_of_a_topic_is_a_problem_with_its_remedy() -> None:
    said = {"what": "topic orders is compacted", "why": "records go", "remedy": "set delete"}
    nothing: dict[str, Any] = {"versions": [], "certificates": [], "changelogs": [], "damaged": []}

    found = status.problems([], {**nothing, "topics": [{**TOPIC, "warnings": [said]}]})

    assert found == [("warning", "orders", "topic orders", said)]


def test_records_that_kafka_had_lost_stay_named(capsys: pytest.CaptureFixture[str]) -> None:
    lost = [{"epoch": 1, "partition": 3, "from": 1, "to": 2}]

    assert shown(capsys, topics=[{**TOPIC, "lost": lost}])[-1] == (
        "orders: Kafka had lost epoch 1 partition 3 offsets 1 to 2 before they were read; that was accepted"
    )


def test_both_sorts_of_versions_stand_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = shown(capsys, versions=[asdict(VIEW), asdict(STORED)])[3:]

    assert [row.split()[-1] for row in rows] == ["logs", "maintained"]


def test_a_stalled_version_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    stalled = replace(
        STORED,
        stalled=True,
        lag_records=1_500,
        lag_seconds=71.26,
        error={"what": "a file is gone", "why": "somebody removed it"},
    )

    row, what, why = shown(capsys, versions=[asdict(stalled)])[3:]

    assert row.split() == ["sales", "v-1", "orders:1007", "1,500", "71.3", "12", "3", "stalled"]
    assert (what, why) == ("sales v-1: a file is gone", "why: somebody removed it")


def test_a_version_that_has_taken_no_step_yet_is_fed_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    new = replace(STORED, position={"orders": 0}, step=0, segment=0, watermark=None)

    (row,) = shown(capsys, versions=[asdict(new)])[3:]

    assert row.split() == ["sales", "v-1", "orders:0", "0", "0.0", "0", "0", "maintained"]


def test_the_live_release_and_the_certificates_of_its_tables_are_one_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    release = {
        "number": 2, "kind": "promote", "created_at": "2026-01-31T12:00:00Z", "approved_by": "ann [admin]",
        "tables": {"orders": "v-2", "sales": "v-1"},
    }  # fmt: skip
    certificate = {
        "table": "sales", "version": "v-1", "equal": False, "rows_compared": 12_345,
        "covers": "all of history", "created_at": "2026-01-31T12:05:00Z",
    }  # fmt: skip
    other = {**certificate, "table": "orders", "version": "v-2", "equal": True}

    assert shown(capsys, release=release, certificates=[certificate, other])[2:] == [
        "release 2 (promote, 2026-01-31T12:00:00Z, by ann [admin]): orders v-2, sales v-1",
        "certificate: sales v-1 different over all of history; 12,345 rows compared, 2026-01-31T12:05:00Z",
        "certificate: orders v-2 equal over all of history; 12,345 rows compared, 2026-01-31T12:05:00Z",
        "sales v-1: speed and batch differ", "why: the certificate of 2026-01-31T12:05:00Z says so",
        "do:  `twinlake verify sales` names the rows; with --repair it replaces them",
    ]  # fmt: skip


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`running(supervisor=False, part={...}, topics=[...])`: one part runs, the lake server says the rest."""

    def run(supervisor: bool = True, part: dict[str, Any] = PART, **lake: Any) -> None:
        monkeypatch.setattr(status.control, "describe", lambda settings: [{**PART, **part}])
        monkeypatch.setattr(status.record, "supervisor_alive", lambda settings: supervisor)
        monkeypatch.setattr(status, "_lake_status", lambda settings, parts: {**NOTHING, **lake})

    return run


@pytest.mark.parametrize(
    ("told", "exit_code"),
    [
        ({}, 0),
        ({"topics": [{**TOPIC, "state": "stopped", "error": RECREATED}]}, 1),
        ({"versions": [asdict(replace(STORED, stalled=True, error=RECREATED))]}, 1),
        ({"part": {"error": RECREATED}}, 1),
        ({"supervisor": False}, 1),
        ({"supervisor": False, "containers": True}, 0),
        ({"part": {"answers": False}}, 3),
    ],
    ids=["well", "stopped", "stalled", "erring", "unsupervised", "containers", "away"],
)  # fmt: skip
def test_status_ends_with_1_where_somebody_has_to_look_and_3_where_a_part_is_away(
    tmp_path: Path, running: Callable[..., None], told: dict[str, Any], exit_code: int
) -> None:
    running(**told)
    if told.get("containers"):
        folders_of(Settings(home=tmp_path)).make()
        folders_of(Settings(home=tmp_path)).containers.touch()

    assert invoke(tmp_path, "status").exit_code == exit_code
    assert invoke(tmp_path, "status", "--json").exit_code == exit_code


def test_the_short_form_has_a_line_for_each_and_fits_80_columns(
    running: Callable[..., None], tmp_path: Path
) -> None:
    release = {"number": 2, "kind": "promote", "created_at": "2026-01-31T12:00:00Z", "approved_by": "ann",
               "tables": {"sales": "v-1"}}  # fmt: skip
    version = asdict(STORED)
    running(topics=[TOPIC], versions=[version], release=release)
    well = invoke(tmp_path, "status", "--short")
    assert well.stdout.splitlines() == [
        "services: 1 of 1 answer", "release 2 (promote by ann)", "topic orders: running, 12 records behind",
        "table sales: maintained, 0.0 s behind", "all is well",
    ]  # fmt: skip

    stopped = {**TOPIC, "state": "stopped", "lag_records": None, "error": RECREATED}
    running(part={"answers": False}, topics=[stopped], release=release, versions=[version])
    ill = invoke(tmp_path, "status", "-s")
    assert ill.exit_code == 3
    assert ill.stdout.splitlines()[0] == "services: 0 of 1 answer; not lake"
    assert "topic orders: stopped, its lag is not known" in ill.stdout
    assert "orders: the topic was recreated" in ill.stdout and "all is well" not in ill.stdout
    assert max(map(len, (well.stdout + ill.stdout).splitlines())) <= 80


def test_it_is_shown_again_and_again_until_somebody_ends_it(
    running: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = invoke(tmp_path, "status", "--watch").exception
    assert isinstance(refused, UsageError) and "needs a terminal" in refused.what
    running(topics=[TOPIC])
    slept = list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "is_terminal", lambda: True)
    monkeypatch.setattr(status.time, "sleep", sleep)
    done = invoke(tmp_path, "status", "--watch", "--short")

    assert done.exit_code == 130 and slept == [status.AGAIN_S] * 2
    assert done.stdout.count("topic orders: running") == 2


def test_status_says_what_a_dead_supervisor_means_and_how_to_start_it_again(
    tmp_path: Path, running: Callable[..., None]
) -> None:
    running(supervisor=False)

    lines = invoke(tmp_path, "status").stdout.splitlines()

    assert lines[-3:-1] == [
        "supervisor: the supervisor has ended", "why: a service that dies now is not started again"
    ]  # fmt: skip
    assert "`twinlake up` starts it again" in lines[-1]


def test_a_live_table_that_is_unequal_is_told_whatever_was_certified_after_it(
    tmp_path: Path, running: Callable[..., None]
) -> None:
    server = unopened(tmp_path)
    make_live(server.settings.lake, {"sales": "a-1", "latest": "l-1"})
    server._certificates.add(certificate("sales", "a-1", equal=False))
    server._certificates.add(certificate("latest", "l-1"))
    running(**server.status())

    done = invoke(tmp_path, "status")

    assert done.exit_code == 1
    assert done.stdout.splitlines()[-3:] == [
        "sales a-1: speed and batch differ", "why: the certificate of 2026-01-31T12:00:00Z says so",
        "do:  `twinlake verify sales` names the rows; with --repair it replaces them",
    ]  # fmt: skip


def test_an_unequal_version_that_nobody_reads_any_more_is_no_problem(
    tmp_path: Path, running: Callable[..., None]
) -> None:
    server = unopened(tmp_path)
    make_live(server.settings.lake, {"sales": "b-2"})
    server._certificates.add(certificate("sales", "b-2"))
    server._certificates.add(certificate("sales", "a-1", equal=False))
    running(**server.status())

    done = invoke(tmp_path, "status")

    assert done.exit_code == 0, done.stdout
    assert "certificate: sales b-2 equal" in done.stdout and "a-1" not in done.stdout


def test_home_names_the_state_to_work_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", "/elsewhere")
    monkeypatch.chdir(tmp_path)

    done = CliRunner().invoke(build_app(), ["--home", "mine", "status"])

    assert str(tmp_path / "mine") in done.exception.why  # type: ignore[union-attr]


def invoke(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["--home", str(home), *arguments])


def test_logs_shows_the_last_lines_of_every_part_of_a_service(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for part in ("airflow-scheduler", "airflow-triggerer"):
        (tmp_path / "logs" / f"{part}.log").write_text("".join(f"{part} {n}\n" for n in range(5)))

    one = invoke(tmp_path, "logs", "airflow-scheduler", "-n", "2")
    both = invoke(tmp_path, "logs", "airflow", "--lines", "1")
    none, unknown = invoke(tmp_path, "logs", "lake"), invoke(tmp_path, "logs", "lkae")

    assert one.stdout.splitlines() == ["airflow-scheduler 3", "airflow-scheduler 4"]
    assert both.stdout.splitlines() == ["airflow-scheduler 4", "airflow-triggerer 4"]
    assert none.exit_code == 0 and "lake has not written anything yet" in none.stderr
    assert isinstance(unknown.exception, UsageError) and "lake" in unknown.exception.remedy


def test_reset_asks_and_removes_what_twinlake_made_and_nothing_else(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("lake", "run", "mine"):
        (home / name).mkdir(parents=True)
    (home / "run" / "ports.json").write_text("{}")
    (home / "gallery.json").write_text('["trades"]')
    (home / "twinlake.toml").write_text("")

    unasked = invoke(home, "reset")

    assert isinstance(unasked.exception, UsageError) and "--yes" in unasked.exception.remedy
    kept = ["mine", "twinlake.toml"]
    assert sorted(path.name for path in home.iterdir()) == sorted(["lake", "run", "gallery.json", *kept])
    assert invoke(home, "reset", "--yes").exit_code == 0
    assert sorted(path.name for path in home.iterdir()) == kept
    again = invoke(tmp_path / "nothing", "reset", "--yes")
    assert again.exit_code == 0 and "there is no data directory to remove" in again.stderr


def test_reset_leaves_a_folder_alone_that_twinlake_was_never_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("logs", "sql", "run"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)

    foreign, empty = (
        invoke(tmp_path, "reset", "--yes"),
        CliRunner().invoke(build_app(), ["--home", "", "reset", "--yes"]),
    )

    for refused in (foreign, empty):
        assert isinstance(refused.exception, UsageError)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "run", "sql"]


def test_status_of_a_folder_leaves_nothing_there(tmp_path: Path) -> None:
    invoke(tmp_path / "typo", "status")

    assert not (tmp_path / "typo").exists()


def test_status_says_what_is_wrong_with_the_addresses(tmp_path: Path) -> None:
    for content in ("{", "[]"):
        (tmp_path / "services.json").write_text(content)
        told = invoke(tmp_path, "status").exception
        assert isinstance(told, UnreachableError) and "services.json cannot be read" in told.what


def test_logs_gives_no_orders_to_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "lake.log").write_text("no \x1b]0;t\x07int\n\tat \u202eyadot\n")

    assert invoke(tmp_path, "logs", "lake").stdout == "no \\x1b]0;t\\x07int\n        at \\u202eyadot\n"


def test_logs_waits_for_a_part_that_has_not_written_yet(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "twinlake", "--home", str(tmp_path), "logs", "lake", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as followed:
        assert followed.stdout and followed.stderr
        assert "has not written anything yet" in followed.stderr.readline()
        (tmp_path / "logs").mkdir()
        (tmp_path / "logs" / "lake.log").write_text("hello\n")
        assert followed.stdout.readline() == "hello\n"
        followed.send_signal(signal.SIGINT)
        followed.wait(20)


@pytest.mark.parametrize("command", [["verify", "sales"], ["query", "SELECT 1"], ["reset", "--yes"], ["up"]])
def test_a_home_that_cannot_be_used_is_told_without_a_traceback(tmp_path: Path, command: list[str]) -> None:
    home = tmp_path / "file"
    home.write_text("mine")

    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "--home", str(home), *command], capture_output=True, text=True
    )

    assert done.returncode in (2, 3) and str(home) in done.stderr and "Traceback" not in done.stderr
    assert home.read_text() == "mine"


def test_an_approver_without_a_name_has_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("twinlake.cli.jobs.getuser", nobody)

    told = invoke(tmp_path, "rollback").exception

    assert isinstance(told, UsageError) and "--approved-by" in told.remedy


def test_a_home_without_a_lake_has_no_releases_and_no_plans(tmp_path: Path) -> None:
    for command in ("releases", "diff", "gate", "promote"):
        told = invoke(tmp_path, command).exception
        assert isinstance(told, UnreachableError) and "there is no lake" in told.what, command


def test_down_of_a_home_where_nothing_runs_says_so(tmp_path: Path) -> None:
    before = invoke(tmp_path, "down")
    (tmp_path / "run").mkdir()
    after = invoke(tmp_path, "down")

    assert (before.exit_code, after.exit_code) == (0, 0)
    assert "nothing was started" in before.stderr and "nothing was running" in after.stderr


def test_a_result_that_finds_no_room_is_told(home: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "twinlake", "--home", str(home), "status", "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    assert done.returncode == 1
    assert "there is no room for the result" in done.stderr and "Traceback" not in done.stderr


def test_damage_is_shown_once_wherever_it_was_met(capsys: pytest.CaptureFixture[str]) -> None:
    def damage(file: str) -> dict[str, str]:
        what = f"{file} is damaged"
        return {"error": "D", "what": what, "why": "0 bytes", "remedy": "restore it", "file": file}

    lost = {**asdict(STORED), "stalled": True, "lost": True, "error": damage("/t/1")}
    found = shown(capsys, versions=[lost], damaged=[damage("/releases/2"), damage("/t/1")])

    assert found[3].split()[-1] == "lost"
    assert found[4:] == [
        "sales v-1: /t/1 is damaged", "why: 0 bytes", "do:  restore it",
        "lake: /releases/2 is damaged", "why: 0 bytes", "do:  restore it",
    ]  # fmt: skip
