"""A file that is not what was written there is named, with what can be done; none is passed over."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.damages import empty, forget
from tests.project import OURS, PROJECT
from twinlake.base.errors import DamagedError, LostVersionError, NotFoundError, TwinlakeError
from twinlake.base.job import Job
from twinlake.batch.maintain import vacuum
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.certificates import Certificates
from twinlake.lake.catalog.plans import Plans
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.runs import Runs
from twinlake.lake.catalog.version import Version, load, next_build, read_versions, version_file
from twinlake.lake.delta import checkpoints, data_file, delta
from twinlake.lake.delta.appender import Appender
from twinlake.lake.delta.damages import Damages
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.delta.ledger import Ledger
from twinlake.lake.delta.read_errors import damage_in, damage_now, damage_of
from twinlake.lake.delta.table_state import TableState
from twinlake.lake.log import active_topics
from twinlake.lake.storage import store
from twinlake.speed.health import is_lost
from twinlake.topics.topic import load_topic

SCHEMA = pa.schema([("n", pa.int64())])
TORN = [
    pytest.param(empty, id="empty"),
    pytest.param(lambda file: file.write_bytes(file.read_bytes()[: len(file.read_bytes()) // 3]), id="half"),
    pytest.param(lambda file: file.write_bytes(b"\0" * len(file.read_bytes())), id="zeros"),
]
Tear = Callable[[Path], object]


def newest(table: Path) -> Path:
    return delta.commit_file(table / "_delta_log", delta.newest_version(table))


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: len(file.read_bytes()) // 2])


def table(path: Path, rows: int = 2) -> Ledger:
    """A real Delta table, a row and a commit at a time."""
    made = Ledger(path, SCHEMA)
    for number in range(rows):
        made.append([{"n": number}])
    return made


def appended(path: Path, commits: int = 3) -> Appender:
    """The same, as a log is: commits of our own."""
    table(path, 1)
    made = Appender(path, [("n",)])
    for number in range(1, commits + 1):
        rows = pa.table({"n": pa.array(range(1000 * number, 1000 * number + 500), pa.int64())})
        made.commit(made.write(rows), "app", number, {"kind": "batch", "batch": number})
    return made


def release(number: int) -> Release:
    return Release(
        number=number, kind="promote", tables={"t": f"v-{number}"}, created_at="", approved_by="me"
    )


def version(lake: Path, build: int) -> Version:
    made = Version(
        table="sales", fingerprint="0123456789ab", build=build, definition={}, topics=("orders",),
        contracts={}, created_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    made.save(lake)
    return made


@pytest.mark.parametrize("tear", TORN)
def test_a_torn_newest_commit_is_refused_by_whoever_would_go_on_from_the_one_before(
    tmp_path: Path, tear: Tear
) -> None:
    ledger = table(tmp_path / "certificates")
    file = newest(ledger.path)
    tear(file)

    for ask in (
        ledger.rows,
        lambda: Ledger(ledger.path, SCHEMA).append([{"n": 9}]),
        lambda: Certificates(tmp_path),
        lambda: TableState(ledger.path),
        lambda: delta.newest_metadata(ledger.path),
    ):
        with pytest.raises(DamagedError) as refused:
            ask()
        assert refused.value.facts["file"] == str(file)
        assert refused.value.facts["belongs_to"] == "the certificates"
        assert str(file) in refused.value.what and "bytes" in refused.value.why


@pytest.mark.parametrize("missing", [0, 1], ids=["all of them", "one of them"])
def test_a_commit_of_our_own_that_lacks_whole_lines_is_refused(tmp_path: Path, missing: int) -> None:
    made = appended(tmp_path / "logs" / "orders", 1)
    rows = pa.table({"n": pa.array([1], pa.int64())})
    made.commit([*made.write(rows), *made.write(rows)], "app", 2, {"kind": "batch", "batch": 2})
    file = newest(made.path)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: 2 + missing]))

    with pytest.raises(DamagedError, match="a file of the log of topic orders is damaged") as refused:
        TableState(made.path)

    assert f"it names {missing} of 2 data files" in refused.value.why
    assert "move the folder" in refused.value.remedy and str(made.path) in refused.value.remedy


def test_a_commit_that_is_gone_between_others_is_missed(tmp_path: Path) -> None:
    made = appended(tmp_path / "logs" / "orders")
    gone = newest(made.path).with_name(f"{2:020d}.json")
    gone.unlink()

    with pytest.raises(DamagedError, match="damaged") as refused:
        TableState(made.path)
    assert refused.value.facts["file"] == str(gone)
    with pytest.raises(DamagedError):
        delta.newest_metadata(made.path, lambda told: told.get("batch") == 1, kept=True)
    assert delta.newest_metadata(made.path, lambda told: told.get("batch") == 1) is None


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda file: file.unlink(), "it is not there"),
        (half, "bytes"),
        (lambda file: flip(file), "CRC"),
    ],
    ids=["missing", "short", "other bytes"],
)
def test_a_data_file_of_a_table_is_named_with_what_was_expected(
    tmp_path: Path, damage: Tear, found: str
) -> None:
    made = appended(tmp_path / "logs" / "orders")
    file = made.path / max(made.files(), key=lambda path: made.files()[path].greatest("n") or 0)
    damage(file)
    known = Damages()

    known.look([made.path])
    with pytest.raises(DamagedError) as refused:
        data_file.read(file)

    assert refused.value.facts["file"] == str(file) and "restore the file" in refused.value.remedy
    noted = [error.why for error in known.all()]
    if found == "CRC":  # of the right size: only who reads it meets it
        assert "CRC" in refused.value.why and not noted
    else:
        assert found in noted[0] and "bytes with 500 rows" in noted[0]
        assert known.below(tmp_path / "logs") and not known.below(tmp_path / "tables")


def test_a_table_that_cannot_be_read_just_now_is_not_called_damaged(tmp_path: Path) -> None:
    made = appended(tmp_path / "logs" / "orders")
    file = made.path / next(iter(made.files()))
    file.unlink()
    assert damage_of(file) is not None

    commit = newest(made.path)
    commit.unlink()
    commit.symlink_to(commit)  # an error of the store that is not a missing file

    with pytest.raises(OSError, match="symbolic links"):
        TableState(made.path)
    assert damage_of(file) is None


@pytest.mark.parametrize(
    "said",
    [
        "[CAST_INVALID_INPUT] The value '[DAMAGED_FILE] {file}: gone' of the type STRING cannot be cast",
        "[USER_RAISED_EXCEPTION] [PATH_NOT_FOUND] Path does not exist: {file}",
        "[USER_RAISED_EXCEPTION] [FAILED_READ_FILE.NO_HINT] Encountered error while reading file {file}",
    ],
)
def test_what_an_error_quotes_is_not_taken_for_damage(tmp_path: Path, said: str) -> None:
    made = appended(tmp_path / "logs" / "orders")
    file = made.path / next(iter(made.files()))
    file.unlink()
    quoting = RuntimeError("a step failed")
    quoting.__cause__ = RuntimeError(said.format(file=file))

    assert damage_in(quoting, tmp_path) is None


def flip(file: Path) -> None:
    """One bit of a page."""
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def test_a_damage_is_forgotten_once_the_file_was_put_back(tmp_path: Path) -> None:
    made = appended(tmp_path / "logs" / "orders")
    file = made.path / next(iter(made.files()))
    shutil.copy(file, tmp_path / "kept")
    half(file)
    known = Damages()
    known.look([made.path])
    assert len(known.all()) == 1

    shutil.copy(tmp_path / "kept", file)

    assert known.all() == []
    known.look([made.path])
    assert known.all() == []


def test_a_damage_is_forgotten_at_the_next_look_once_the_file_was_put_back_as_old_as_it_was(
    tmp_path: Path,
) -> None:
    made, other = (appended(tmp_path / "logs" / name) for name in ("orders", "clicks"))
    data, torn, text = made.path / next(iter(made.files())), newest(other.path), tmp_path / "plans" / "a.json"
    store.replace(text, "{}")
    files = {data: flip, torn: empty, text: half}
    known, before = Damages(), {file: (file.read_bytes(), file.stat()) for file in files}

    def put(file: Path, content: bytes) -> None:
        """As a backup that keeps times does, or a disk that loses bytes and notes nothing."""
        file.write_bytes(content)
        os.utime(file, ns=(before[file][1].st_mtime_ns, before[file][1].st_mtime_ns))

    for file, damage in files.items():
        damage(file)
        put(file, file.read_bytes().ljust(len(before[file][0]), b"\0"))
        damaged_now = damage_now(file)
        assert damaged_now is not None
        known.note(damaged_now)
    known.look([made.path, other.path])
    assert [error.facts["file"] for error in known.all()] == sorted(map(str, files))

    for file, (content, _) in before.items():
        put(file, content)
    known.look([made.path, other.path])

    assert known.all() == []


def test_a_damage_is_known_until_the_file_is_whole_whatever_is_done_to_it(tmp_path: Path) -> None:
    made = appended(tmp_path / "logs" / "orders")
    file = made.path / next(iter(made.files()))
    whole = file.read_bytes()
    known = Damages()
    flip(file)
    known.note(damage_of(file))  # type: ignore[arg-type]

    for content in (file.read_bytes(), whole[:100], b""):  # a touch, a copy under way
        file.write_bytes(content)
        assert [error.facts["file"] for error in known.all()] == [str(file)]
    assert known.all()[0].why.startswith("it has 0 bytes")

    file.write_bytes(whole)
    assert known.all() == []


def test_a_damage_is_forgotten_once_its_table_needs_the_file_no_more(tmp_path: Path) -> None:
    made = appended(tmp_path / "logs" / "orders")
    version = appended(tmp_path / "tables" / "sales" / "0123456789ab-1")
    known, files = Damages(), [one.path / next(iter(one.files())) for one in (made, version)]
    for file in files:
        flip(file)
        known.note(damage_of(file))  # type: ignore[arg-type]
    known.look([made.path, version.path])
    assert len(known.all()) == 2

    from deltalake import DeltaTable

    DeltaTable(str(made.path)).delete()
    known.look([made.path])  # the version was retired

    assert known.all() == [] and all(file.exists() for file in files)


def test_too_many_open_files_are_no_damage_and_no_end_of_one(tmp_path: Path) -> None:
    made = appended(tmp_path / "logs" / "orders")
    torn, sound = (made.path / name for name in sorted(made.files())[:2])
    whole = torn.read_bytes()
    flip(torn)
    known, free = Damages(), Damages()
    known.note(damage_of(torn))  # type: ignore[arg-type]
    torn.write_bytes(whole)

    with no_more_files():
        told = [error.facts["file"] for error in known.all()]
        known.look([made.path])
        free.look([made.path])
        with pytest.raises(OSError, match="Too many open files"):
            data_file.rows_in(sound)
        with pytest.raises(OSError, match="Too many open files"):
            data_file.read(sound)
        assert damage_of(sound) is None

    assert told == [str(torn)] and free.all() == []
    assert known.all() == []  # whole, as is seen now


@contextmanager
def no_more_files() -> Iterator[None]:
    """This process can open none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_checkpoint_whose_content_is_torn_is_put_aside_and_the_commits_are_read(tmp_path: Path) -> None:
    made = appended(tmp_path / "logs" / "orders")
    from deltalake import DeltaTable

    DeltaTable(str(made.path)).create_checkpoint()
    (file,) = (made.path / "_delta_log").glob("*.checkpoint.parquet")
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    file.write_bytes(b"PAR1" + b"\xff" * (len(content) - footer - 4) + content[-footer:])

    state = TableState(made.path)

    assert set(state.files) == set(made.files()) and state.transaction("app") == 3
    assert not file.exists()


def of_commits(tmp_path: Path) -> tuple[Path, Path, dict[str, Any]]:
    """A table of which all commits and a checkpoint are there, the checkpoint, and the table's files."""
    made = appended(tmp_path / "logs" / "orders")
    checkpoints.write(made.path)
    (file,) = (made.path / delta.LOG_FOLDER).glob("*.checkpoint.parquet")
    return made.path, file, made.files()


def test_a_checkpoint_of_which_any_bit_has_changed_is_put_aside_and_the_commits_are_read(
    tmp_path: Path, seed: int
) -> None:
    path, file, files = of_commits(tmp_path)
    drawn, content = random.Random(seed), file.read_bytes()
    beside = file.with_name(f".{file.name}.sha256")
    summed = beside.read_bytes()

    for look in (TableState, delta.refuse_torn):
        for _ in range(100):
            changed = bytearray(content)
            changed[drawn.randrange(len(content))] ^= 1 << drawn.randrange(8)
            file.write_bytes(changed)
            beside.write_bytes(summed)
            look(path)
            assert not file.exists() and not beside.exists()
            assert TableState(path).files == files
    checkpoints.write(path)
    assert file.exists() and beside.exists() and TableState(path).files == files


def test_a_checkpoint_that_has_changed_and_cannot_be_put_aside_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, file, files = of_commits(tmp_path)
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)

    def read_only(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(store, "rename", read_only)
    with pytest.raises(DamagedError, match="SHA-256") as refused:
        delta.refuse_torn(path)

    assert refused.value.facts["file"] == str(file) and file.exists()
    assert TableState(path).files == files  # which reads the commits


def test_a_ledger_goes_on_and_checkpoints_are_made_once_a_torn_one_was_put_aside(tmp_path: Path) -> None:
    ledger = table(tmp_path / "certificates")
    checkpoints.write(ledger.path)
    (file,) = (ledger.path / delta.LOG_FOLDER).glob("*.checkpoint.parquet")
    half(file)
    hint = file.with_name("_last_checkpoint")
    names_it = hint.read_bytes()

    assert len(Ledger(ledger.path, SCHEMA).rows()) == 2
    Ledger(ledger.path, SCHEMA).append([{"n": 9}])
    hint.write_bytes(names_it)  # as a former Twinlake has left it, or a backup that lacks the file
    assert len(Ledger(ledger.path, SCHEMA).rows()) == 3
    checkpoints.write(ledger.path)

    assert json.loads(hint.read_bytes())["version"] == delta.newest_version(ledger.path)


def test_a_checkpoint_that_cannot_be_opened_just_now_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = appended(tmp_path / "logs" / "orders")
    from deltalake import DeltaTable

    DeltaTable(str(made.path)).create_checkpoint()
    (file,) = (made.path / "_delta_log").glob("*.checkpoint.parquet")
    for commit in (made.path / "_delta_log").glob("*.json"):
        commit.unlink()  # cleaned up: the checkpoint alone says what there is
    opened = [store.read, store.reader]

    def too_many_open(place: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files", str(place))

    def every_second(place: Path) -> bytes:
        """What has been read once cannot be opened again."""
        monkeypatch.setattr(store, "read", too_many_open)
        return opened[0](place)

    monkeypatch.setattr(store, "read", every_second)
    monkeypatch.setattr(store, "reader", too_many_open)
    with suppress(OSError):
        TableState(made.path)
    monkeypatch.undo()

    assert file.exists()
    assert set(TableState(made.path).files) == set(made.files())


@pytest.mark.parametrize("tear", TORN)
def test_the_release_before_a_torn_one_is_not_taken_for_the_live_one(tmp_path: Path, tear: Tear) -> None:
    for number in (1, 2):
        release_log.commit(tmp_path, release(number))
    file = newest(release_log.releases_path(tmp_path))
    kept = file.read_bytes()
    tear(file)

    for ask in (release_log.live, release_log.releases, lambda lake: release_log.commit(lake, release(2))):
        with pytest.raises(DamagedError, match="a file of the release log is damaged"):
            ask(tmp_path)

    file.write_bytes(kept)
    assert release_log.live(tmp_path) == release(2)


def test_a_release_that_is_gone_from_the_middle_is_missed(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        release_log.commit(tmp_path, release(number))
    newest(release_log.releases_path(tmp_path)).with_name(f"{2:020d}.json").unlink()

    with pytest.raises(DamagedError, match=r"0002\.json"):
        release_log.releases(tmp_path)


def test_without_a_backup_the_folder_of_a_ledger_is_moved_away(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.put(Job(id="a", kind="plan", params={}, created_at="2026-01-01T00:00:00Z"))
    release_log.commit(tmp_path, release(1))
    for name, ask in (("runs", Runs), ("releases", release_log.releases)):
        newest(tmp_path / name).write_bytes(b"")
        with pytest.raises(DamagedError) as refused:
            ask(tmp_path)
        assert f"move the folder {tmp_path / name} away" in refused.value.remedy

        (tmp_path / name).rename(tmp_path / f"{name}.damaged")

    assert Runs(tmp_path).all() == []
    assert release_log.releases(tmp_path) == []
    release_log.commit(tmp_path, release(1))
    assert release_log.live(tmp_path) == release(1)


def test_a_torn_version_stops_no_other_and_its_number_is_not_used_again(tmp_path: Path) -> None:
    kept, torn = version(tmp_path, 1), version(tmp_path, 2)
    file = version_file(tmp_path, "sales", torn.name)
    half(file)

    found, damages = read_versions(tmp_path)

    assert found == [kept] and next_build(tmp_path, "sales") == 3
    assert [error.facts["version"] for error in damages] == [torn.name]
    assert damages[0].remedy.endswith("`twinlake plan`, `twinlake build`, `twinlake promote`")
    with pytest.raises(DamagedError, match="a file of version"):
        load(file)


def test_other_files_say_what_makes_them_again(tmp_path: Path) -> None:
    topic = load_topic("orders", OURS)
    active_topics.publish(tmp_path, topic)
    half(tmp_path / "topics" / "orders.json")
    with pytest.raises(DamagedError, match="that readers go by") as refused:
        active_topics.active_topic(tmp_path, "orders")
    assert "start the lake server again" in refused.value.remedy
    active_topics.publish(tmp_path, topic)
    assert active_topics.active_topic(tmp_path, "orders").name == "orders"

    plan = "0123456789ab"
    store.replace(tmp_path / "plans" / f"{plan}.json", '{"id": ')
    with pytest.raises(DamagedError, match="a file of a plan") as refused:
        Plans(tmp_path).load(plan)
    assert "delete the file" in refused.value.remedy
    (tmp_path / "plans" / f"{plan}.json").unlink()
    with pytest.raises(NotFoundError):
        Plans(tmp_path).load(plan)


def test_a_version_is_lost_by_damage_of_its_own_and_not_by_its_log_s(tmp_path: Path) -> None:
    rows = tmp_path / "tables" / "sales" / "0123456789ab-1"
    other = tmp_path / "tables" / "sales" / "0123456789ab-10"
    errors: list[TwinlakeError | None] = [
        DamagedError("", facts={"file": str(rows / "part-1.parquet")}),
        DamagedError("", facts={"file": str(other / "part-1.parquet")}),
        DamagedError("", facts={"file": str(tmp_path / "logs" / "orders" / "part-1.parquet")}),
        LostVersionError("ahead_of_log", "", ""),
        TwinlakeError("the disk is full"),
        None,
    ]

    assert [is_lost(error, rows) for error in errors] == [True, False, False, True, False, False]


def test_an_error_that_tells_of_damage_goes_over_the_wire_with_its_facts(tmp_path: Path) -> None:
    from twinlake.base.errors import error_of

    half(newest(table(tmp_path / "runs").path))
    with pytest.raises(DamagedError) as refused:
        Runs(tmp_path)

    told = json.loads(json.dumps(refused.value.to_json()))
    again = error_of(told)

    assert type(again) is DamagedError and again.facts == refused.value.facts
    assert SimpleNamespace(**told).file == refused.value.facts["file"]


@pytest.mark.parametrize("tear", TORN)
def test_a_commit_is_refused_before_spark_passes_over_it_and_named_where_spark_could_not_read_it(
    spark: SparkSession, tmp_path: Path, tear: Tear
) -> None:
    path = appended(tmp_path / "sales").path
    file = newest(path)
    errors = spark._jvm.org.apache.spark.sql.errors.QueryExecutionErrors  # type: ignore[union-attr]
    said: Any = RuntimeError("a job failed")
    said.java_exception = errors.cannotReadFilesError(None, file.as_uri())
    delta.refuse_torn(path)
    assert damage_in(said, tmp_path) is None  # it is whole by now

    tear(file)

    with pytest.raises(DamagedError, match="is damaged") as refused:
        delta.refuse_torn(path)
    named = damage_in(said, tmp_path)
    assert named and named.facts["file"] == refused.value.facts["file"] == str(file)
    delta.refuse_torn(path, delta.newest_version(path) - 1)


READERS: dict[str, Callable[[SparkSession, Path], object]] = {
    "SQL": lambda spark, path: spark.sql(f"FROM {relation_sql(path)}").count(),
    "SQL at a version": lambda spark, path: spark.sql(f"FROM {relation_sql(path, 4)}").count(),
    "rows": lambda spark, path: delta.rows(spark, path).count(),
    "rows at a version": lambda spark, path: delta.rows(spark, path, 4).count(),
    "statistics": lambda spark, path: delta.statistics(spark, path, "n").count(),
    "an append": lambda spark, path: delta.append(spark.range(1), path, "app", 4, {}),
    "a replacement": lambda spark, path: delta.replace(spark.range(1), path, "n < 1", "app", 4, {}),
    "VACUUM": lambda spark, path: vacuum(spark, path, 6),
    "a checkpoint": lambda spark, path: checkpoints.write(path),
    "a table's state": lambda spark, path: TableState(path),
}


def test_whoever_reads_a_table_passes_over_no_commit_in_the_middle_of_its_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One that was emptied is nothing to Spark and deltalake: they see none of its rows, and VACUUM deletes
    its files. Behind a checkpoint nobody needs it."""
    path = appended(tmp_path / "tables" / "sales" / "0123456789ab-1").path
    file = delta.commit_file(path / delta.LOG_FOLDER, 3)
    whole = file.read_bytes()
    file.write_bytes(b"")
    there = sorted(path.rglob("*"))
    forget(spark)

    for name, read in READERS.items():
        with pytest.raises(DamagedError) as refused:
            read(spark, path)
        assert (name, refused.value.facts["file"]) == (name, str(file))
        assert refused.value.facts["expected"].startswith("a whole commit")
        assert refused.value.remedy.endswith("`twinlake plan`, `twinlake build`, `twinlake promote`")
    assert sorted(path.rglob("*")) == there
    delta.refuse_torn(path, 2)  # nothing of it is needed there

    file.write_bytes(whole)
    forget(spark)
    assert delta.rows(spark, path).count() == 1501
    checkpoints.write(path)
    file.write_bytes(b"")
    forget(spark)
    assert delta.rows(spark, path).count() == 1501
    with pytest.raises(DamagedError):
        delta.refuse_torn(path, 3)


@pytest.mark.parametrize("tear", [*TORN, pytest.param(lambda file: file.unlink(), id="gone")])
def test_a_commit_in_the_middle_is_looked_at_again_once_it_has_changed(tmp_path: Path, tear: Tear) -> None:
    path = appended(tmp_path / "logs" / "orders").path
    file = delta.commit_file(path / delta.LOG_FOLDER, 3)
    delta.refuse_torn(path)

    tear(file)

    for version in (None, 4):
        with pytest.raises(DamagedError) as refused:
            delta.refuse_torn(path, version)
        assert refused.value.facts["file"] == str(file)
    delta.refuse_torn(path, 2)


def test_commits_that_were_cleaned_up_behind_a_checkpoint_are_not_missed(tmp_path: Path) -> None:
    path = appended(tmp_path / "logs" / "orders").path
    checkpoints.write(path)
    for old in range(4):
        delta.commit_file(path / delta.LOG_FOLDER, old).unlink()

    delta.refuse_torn(path)
    (path / delta.LOG_FOLDER / "_last_checkpoint").write_text("{")  # then a list of the folder says it
    delta.refuse_torn(path)
    delta.refuse_torn(path, 4)
    delta.refuse_torn(path, 2)  # whoever reads it is told that it is not kept


def test_nobody_asks_spark_or_deltalake_for_a_table_without_that_look() -> None:
    asking = re.compile(r"""format\("delta"\)|delta\.[`{]|DeltaTable\(|forTable\(""")
    found = {
        file.relative_to(PROJECT).as_posix()
        for file in (PROJECT / "twinlake").rglob("*.py")
        if asking.search(file.read_text()) and "setup" not in file.parts  # which has no lake
    }

    assert found == {
        "twinlake/lake/delta/delta.py",  # has that look
        "twinlake/lake/delta/ledger.py", "twinlake/lake/catalog/release_log.py",  # read commits themselves
        "twinlake/lake/delta/checkpoints.py", "twinlake/difference/touched.py",  # after a look of their own
    }  # fmt: skip


def test_a_filter_leaves_out_no_rows_by_a_dictionary_that_has_changed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Dictionaries are asked before any page is read, and what Spark reads then it does not verify."""
    folder = tmp_path / "rows"
    rows = spark.range(50).selectExpr("id", "'valid' AS verdict")
    rows.coalesce(1).write.parquet(str(folder))
    (file,) = folder.glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[content.index(b"valid")] ^= 1  # in the dictionary, which comes before all else that has the word
    file.write_bytes(content)

    with pytest.raises((PySparkException, Py4JJavaError), match="FAILED_READ_FILE"):
        spark.read.schema(rows.schema).parquet(str(folder)).where("verdict = 'valid'").collect()
