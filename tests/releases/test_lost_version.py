"""A version that can never go on counts as absent: what an error says to do (plan, build, promote) helps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.damages import OF_COMMITS, OF_DATA, forget
from tests.project import TABLES
from tests.releases.lake import Lake, following_sql_server, order
from twinlake.base.errors import DamagedError, DifferenceError, LostVersionError, NotFoundError, error_of
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.delta import delta
from twinlake.releases.build import plan_versions

NAMES = {table.name: table for table in TABLES}
SALES, LATEST = "sales_per_region", "latest_order"


def at(lake: Lake, batch: int) -> None:
    """Waits until the stored tables have come there."""
    versions = lake.server.lake.versions
    for table in (SALES, LATEST):
        version = lake.server.lake.version(table)
        wait_for(table, lambda one=version: versions.position(one)["orders"] >= batch or None, 60)


@pytest.fixture(scope="module")
def backup(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that was copied while it ran: its log one batch before its tables."""
    home = tmp_path_factory.mktemp("first")
    copied = tmp_path_factory.mktemp("backup")
    with following_sql_server(home / "lake") as sql_url:
        lake = Lake(spark, home, sql_url)
        lake.append([order(number) for number in range(50)])
        plan = lake.server.lake.plans.load(lake.build(NAMES))
        first = Release(
            number=1, kind="initial", created_at="2026-01-31T12:00:00Z", approved_by="tester", plan=plan.id,
            tables={table: version.name for table, version in plan_versions(lake.server.lake, plan).items()},
        )  # fmt: skip
        release_log.commit(lake.path, first)
        at(lake, 1)
        shutil.copytree(home / "lake" / "logs", copied / "lake" / "logs")
        lake.append([order(number) for number in range(50, 80)])
        at(lake, 2)
        shutil.copytree(
            home / "lake", copied / "lake", ignore=shutil.ignore_patterns("logs"), dirs_exist_ok=True
        )
        lake.stop()
        shutil.copytree(home / "lake" / "logs", copied / "newer logs")
    return copied


@pytest.fixture
def restored(
    spark: SparkSession, backup: Path, tmp_path: Path
) -> Iterator[Callable[[Callable[[Path], None]], Lake]]:
    """A server over the backup, after something was done to its files."""
    home, running = tmp_path / "home", list[Lake]()
    shutil.copytree(backup, home)
    with following_sql_server(home / "lake") as sql_url:

        def start(change: Callable[[Path], None] = lambda lake: None) -> Lake:
            change(home / "lake")
            running.append(Lake(spark, home, sql_url))
            return running[-1]

        yield start
        for lake in running:
            lake.stop()


def with_newer_logs(lake: Path) -> None:
    """The log is not behind its tables."""
    shutil.rmtree(lake / "logs")
    shutil.copytree(lake.parent / "newer logs", lake / "logs")


def health(lake: Lake) -> dict[str, dict[str, Any]]:
    """What `twinlake status` gets of each live version, by table."""
    status = lake.server.status()
    return {
        one["table"]: one
        for one in status["versions"]
        if status["release"]["tables"][one["table"]] == one["version"]
    }


def test_tables_that_are_ahead_of_a_restored_log_are_built_again_by_the_plan_that_the_error_names(
    restored: Callable[..., Lake],
) -> None:
    lake = restored()
    before = health(lake)
    told = wait_for("readers to be told", lake.told_of_some, 30)
    for kind in ("verify", "rebuild"):
        with pytest.raises(LostVersionError, match="ahead of its log"):
            lake.do(kind, table=SALES)

    plan = lake.plan(NAMES)
    lines = "\n".join(plan["lines"])
    lake.do("build", plan=plan["id"])
    compared = lake.do("diff", table=SALES, plan=plan["id"])
    promoted = lake.promote(plan["id"])
    lake.append([order(number) for number in range(80, 90)])
    at(lake, 2)

    # what readers see of them is what they had taken, and nobody has to reach that
    shown = {SALES: {"orders": 2}, LATEST: {"orders": 2}}
    assert {one.table: one.position for one in told.stalled} == shown
    assert {table: before[table]["position"] for table in shown} == shown
    assert promoted["positions"] == {table: {"orders": 1} for table in NAMES}
    for table in (SALES, LATEST):
        error = before[table]["error"]
        assert before[table]["stalled"] and before[table]["lost"]
        assert (error["error"], error["reason"]) == ("LostVersionError", "ahead_of_log")
        assert "twinlake plan" in error["remedy"]
        assert f"{table}: changed\n    version {before[table]['version']} cannot go on: " in lines
    assert not before["orders"]["stalled"] and "orders: unchanged" in lines
    assert (compared["position"], compared["equal"], compared["common"]) == ({"orders": 1}, True, 5)
    after = health(lake)
    for table in (SALES, LATEST):
        assert after[table]["version"].endswith("-2") and not after[table]["stalled"]
        assert lake.do("verify", table=table)["position"] == {"orders": 2}
    with pytest.raises(NotFoundError, match="release 1 cannot come back"):
        lake.do("rollback", approved_by="tester")


def test_a_version_that_is_ahead_of_its_log_is_promoted_by_no_plan_that_was_built_before(
    restored: Callable[..., Lake],
) -> None:
    lake = restored(lambda lake: shutil.rmtree(release_log.releases_path(lake)))
    (plan,) = (file.stem for file in (lake.path / "plans").glob("*.json") if file.stem != "analysed")

    with pytest.raises(DifferenceError, match="is not built"):
        lake.promote(plan)

    assert release_log.live(lake.path) is None


@pytest.mark.faults
def test_damaged_versions_are_built_again_by_what_their_errors_say_to_do(
    restored: Callable[..., Lake],
) -> None:
    torn: dict[str, Path] = {}

    def damage(lake: Path) -> None:
        with_newer_logs(lake)
        tables = release_log.live(lake)
        assert tables is not None
        rows = {table: lake / "tables" / table / name for table, name in tables.tables.items()}
        torn["orders"] = rows["orders"].with_name(f"{rows['orders'].name}.json")
        torn["orders"].write_text(torn["orders"].read_text()[:50])
        log = rows[SALES] / delta.LOG_FOLDER
        torn[SALES] = delta.commit_file(log, delta.newest_version(rows[SALES]))
        torn[SALES].write_bytes(b"")
        torn[LATEST] = max(rows[LATEST].rglob("*.parquet"), key=lambda file: file.stat().st_size)
        content = bytearray(torn[LATEST].read_bytes())
        content[len(content) // 3] ^= 1  # as long as it was: only who reads it meets it
        torn[LATEST].write_bytes(content)

    lake = restored(damage)
    before = health(lake)
    for table, file in torn.items():
        with pytest.raises(DamagedError) as refused:
            lake.do("verify", table=table)
        assert refused.value.facts["file"] == str(file)
        assert refused.value.facts["table"] == table
        assert refused.value.remedy.endswith("`twinlake plan`, `twinlake build`, `twinlake promote`")
    shown = health(lake)
    plan = lake.plan(NAMES)
    lake.do("build", plan=plan["id"])
    compared = lake.do("diff", table=LATEST, plan=plan["id"])
    lake.promote(plan["id"])

    assert "orders" not in before and before[SALES]["lost"] and not before[LATEST]["stalled"]
    assert {table: shown[table]["error"]["file"] for table in (SALES, LATEST)} == {
        table: str(torn[table]) for table in (SALES, LATEST)
    }
    assert shown[LATEST]["lost"] and shown[LATEST]["position"] == {"orders": 2}
    damaged = {error["file"] for error in lake.server.status()["damaged"]}
    assert damaged >= {str(torn["orders"]), str(torn[LATEST])}
    assert {change["table"]: change["action"] for change in plan["changes"]} == dict.fromkeys(
        NAMES, "changed"
    )
    assert compared["equal"] and compared["common"] > 0
    after = health(lake)
    assert not any(one["stalled"] for one in after.values()) and set(after) == set(NAMES)
    for table in NAMES:
        assert lake.do("verify", table=table)["position"] == {"orders": 2}


def test_every_job_names_a_damaged_file_of_the_log_and_all_go_on_once_it_is_restored(
    restored: Callable[..., Lake],
) -> None:
    files: list[tuple[Path, bytes]] = []

    def damage(lake: Path) -> None:
        with_newer_logs(lake)
        file = next((lake / "logs" / "orders").glob("*.parquet"))
        files.append((file, file.read_bytes()))
        file.write_bytes(file.read_bytes()[:1000])

    lake = restored(damage)
    ((file, whole),) = files
    sales = next(table for table in TABLES if table.name == SALES)
    changed = NAMES | {SALES: replace(sales, where="status <> 'cancelled'")}
    assert lake.server.status()["topics"][0]["error"] is None
    lake.server.lake.damages.look(lake.server.lake.tables())  # every five minutes
    errors = [error_of(lake.server.status()["topics"][0]["error"])]
    for kind, params in (("verify", {"table": LATEST}), ("rebuild", {"table": SALES})):
        with pytest.raises(DamagedError) as refused:
            lake.do(kind, **params)
        errors.append(refused.value)
    file.write_bytes(whole)
    plan = lake.plan(changed)["id"]
    file.write_bytes(whole[:1000])
    with pytest.raises(DamagedError) as refused:
        lake.do("build", plan=plan)
    errors.append(refused.value)
    status = lake.server.status()

    for error in [*errors, error_of(status["topics"][0]["error"])]:
        assert isinstance(error, DamagedError) and error.facts["file"] == str(file)
        assert (error.facts["topic"], error.facts["found"]) == ("orders", "it has 1,000 bytes")
        assert f"{len(whole):,} bytes with" in error.facts["expected"]
        assert "restore the file from a backup" in error.remedy
    stalled = {one["version"][-2:]: one["lost"] for one in status["versions"] if one["stalled"]}
    assert stalled == {"-2": False}  # the build, which waits for the file; the others need it no more
    file.write_bytes(whole)
    lake.do("build", plan=plan)
    assert lake.do("verify", table=LATEST)["equal"]
    status = lake.server.status()
    assert status["topics"][0]["error"] is None and status["damaged"] == []


@pytest.mark.faults
def test_whatever_a_job_reads_damaged_it_names_and_takes_for_nothing_else(
    restored: Callable[..., Lake], spark: SparkSession
) -> None:
    lake = restored(with_newer_logs)
    where = "status <> 'cancelled'"
    changed = NAMES | {name: replace(NAMES[name], where=where) for name in (SALES, "orders")}
    plan = lake.build(changed)
    log, rows = lake.path / "logs" / "orders", lake.server.lake.version(SALES).path(lake.path)

    def data() -> Path:
        return max(log.glob("*.parquet"), key=lambda file: file.stat().st_size)

    def commit(path: Path, before: int = 0) -> Path:
        """The newest, or the one so many before it."""
        return delta.commit_file(path / delta.LOG_FOLDER, delta.newest_version(path) - before)

    def do(kind: str, table: str) -> dict[str, Any]:
        if kind == "plan":
            return lake.plan(changed)
        if kind == "maintain":
            return lake.do(kind)
        return lake.do(kind, table=table, **({"plan": plan} if kind == "diff" else {}))

    # compared is a damaged version as its log makes it
    of_sales = [("verify", SALES), ("rebuild", SALES)]
    of_log = [("verify", "orders"), ("diff", "orders"), *of_sales, ("plan", "")]
    cases = [(data, damage, of_log) for damage, _ in OF_DATA.values()]
    cases += [(lambda: commit(log), damage, of_log) for damage in OF_COMMITS.values()]
    cases += [(lambda: commit(rows), damage, of_sales) for damage in OF_COMMITS.values()]
    cleaned = ("maintain", "")  # one in the middle is nothing to Spark: it would delete what it names
    cases.append((lambda: commit(log, before=1), OF_COMMITS["empty"], [*of_log, cleaned]))
    cases.append((lambda: commit(rows, before=1), OF_COMMITS["empty"], [*of_sales, cleaned]))
    compared = do("diff", SALES)
    found: list[tuple[str, str, str | None]] = []
    expected: list[tuple[str, str, str | None]] = []
    for file_of, damage, jobs in cases:
        file = file_of()
        whole = file.read_bytes()
        for kind, table in jobs:
            file.write_bytes(whole)
            # nobody knows of the damage: a version known to be lost is not read
            lake.server.lake.damages.look(lake.server.lake.tables())
            damage(file)
            forget(spark)
            expected.append((f"{damage.__name__} {file.name}", f"{kind} {table}", str(file)))
            try:
                do(kind, table)
                found.append((*expected[-1][:2], None))
            except DamagedError as error:
                found.append((*expected[-1][:2], error.facts["file"]))
            except Exception as error:
                found.append((*expected[-1][:2], repr(error)[:500]))
        if jobs[0][1] == SALES:
            # by now it is known: what it would show is made of the log instead
            blue = {**compared["blue"], "delta_version": None}
            assert do("diff", SALES) == {**compared, "blue": blue}
        file.write_bytes(whole)
        forget(spark)
        assert do("verify", SALES)["equal"]

    assert found == expected
    assert do("rebuild", SALES)["equal"] and do("verify", "orders")["equal"]
    assert not do("plan", "")["empty"] and do("maintain", "")["versions_deleted"] == []


def test_a_torn_release_is_not_passed_over_and_without_a_backup_the_tables_are_made_live_again(
    restored: Callable[..., Lake],
) -> None:
    torn: list[Path] = []

    def damage(lake: Path) -> None:
        with_newer_logs(lake)
        releases = release_log.releases_path(lake)
        torn.append(delta.commit_file(releases / delta.LOG_FOLDER, delta.newest_version(releases)))
        torn[0].write_bytes(torn[0].read_bytes()[:200])

    lake = restored(damage)
    status = lake.server.status()
    for kind in ("plan", "retire"):
        with pytest.raises(DamagedError, match="a file of the release log is damaged"):
            lake.plan(NAMES) if kind == "plan" else lake.do(kind, keep=3)
    releases = release_log.releases_path(lake.path)
    releases.rename(releases.with_name("damaged"))
    plan = lake.plan(NAMES)["id"]
    built = lake.do("build", plan=plan)
    live = lake.promote(plan)

    assert (status["release"], [error["file"] for error in status["damaged"]]) == (None, [str(torn[0])])
    assert f"move the folder {releases} away" in status["damaged"][0]["remedy"]
    assert built["built"] == [] and live["release"] == 1
    assert not any(one["stalled"] for one in health(lake).values())


@pytest.mark.faults
def test_tables_that_somebody_has_altered_are_built_again_by_what_their_errors_say_to_do(
    restored: Callable[..., Lake], spark: SparkSession
) -> None:
    def alter(lake: Path) -> None:
        with_newer_logs(lake)
        live = release_log.live(lake)
        assert live is not None
        for table, change in (
            (SALES, "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"),
            (LATEST, "ADD COLUMNS (more string)"),
        ):
            spark.sql(f"ALTER TABLE delta.`{lake / 'tables' / table / live.tables[table]}` {change}")

    lake = restored(alter)
    lost = health(lake)
    built_again(lake)

    assert {table: lost[table]["error"]["reason"] for table in (SALES, LATEST)} == {
        SALES: "altered", LATEST: "other_columns",
    }  # fmt: skip
    assert "deletionVectors" in lost[SALES]["error"]["why"] and "more" in lost[LATEST]["error"]["why"]


@pytest.mark.faults
def test_tables_of_another_history_and_without_a_position_are_built_again(
    restored: Callable[..., Lake],
) -> None:
    def forget_position(lake: Path) -> None:
        live = release_log.live(lake)
        assert live is not None
        folder = lake / "tables" / SALES / live.tables[SALES] / delta.LOG_FOLDER
        for file in folder.glob("*.json"):
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            for line in lines:
                line.get("commitInfo", {}).pop("userMetadata", None)
            file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    lake = restored(forget_position)
    lake.append([order(number) for number in range(80, 90)])  # the restored log reads on

    def reasons() -> dict[str, str]:
        return {table: health(lake)[table]["error"]["reason"] for table in (SALES, LATEST)}

    expected = {SALES: "no_position", LATEST: "other_history"}
    wait_for("the reasons", lambda: reasons() == expected or None, 60)
    built_again(lake)
    for table in (SALES, LATEST):
        assert lake.do("verify", table=table)["equal"]


def built_again(lake: Lake) -> None:
    """By what each error of a lost version says."""
    lost = [one for one in health(lake).values() if one["lost"]]
    assert {one["table"] for one in lost} == {SALES, LATEST}
    for one in lost:
        assert one["error"]["remedy"].endswith("`twinlake plan`, `twinlake build`, `twinlake promote`")
    plan = lake.plan(NAMES)["id"]
    lake.do("build", plan=plan)
    lake.promote(plan)
    assert not any(one["stalled"] for one in health(lake).values())
