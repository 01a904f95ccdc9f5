"""Witnessing: asks another engine what it makes of the logs, and whether a version shows that.

That engine (`twinlake/witness`) knows a lake's files and no more: here is written down what it must know of a
version at its pin. It reads the log's own files where they are, and the version's rows from a staging folder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from twinlake.base.errors import NotFoundError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.base.waiting import holding
from twinlake.kinds.clock import LOG_APPEND_TIME, PROCESSING_TIME
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion, Opened, Readable, feeds
from twinlake.lake.catalog.version import Pin
from twinlake.lake.catalog.witnessed import Witnessed
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log.log import Log
from twinlake.lake.storage import store
from twinlake.topics.verdict import rows_in
from twinlake.witness.answer import FAILED, GONE, LONGEST, NOT_WITNESSED, Answer
from twinlake.witness.child import witness
from twinlake.witness.question import Field, Limits, Question, ReadTable, Rows, TopicLog
from twinlake.witness.refused import one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LIMITS = Limits(seconds=3600)
"""What one answer may take; it runs beside everything else, at a low priority."""
_GONE = ("FILE_NOT_EXIST", "FileNotFoundException")
"""What Spark says of a file of the pin that a clean-up has deleted."""
WAIT_S = 7 * 86_400.0
"""Others are asked before it, one after the other; whoever waits may be cancelled."""
_asking = threading.Lock()
"""A lake server has one child at a time: each may take 2 GB."""
IN_A_STORE = "the lake is in a store, and its files would have to be fetched"
STEPPED_ROWS = 10_000_000
"""Of a longer log Spark writes no rows for it."""


def witnessed(
    opened: Opened, pin: Pin, run: Run, staging: Location, at: str, again: Callable[[], Pin]
) -> Witnessed:
    """The engine's answer about the version at its pin; at the pin that `again` gives where a file that it
    names is gone meanwhile. It raises CancelledError alone: what keeps the engine from being asked is an
    answer, too. While it is asked about another version, this waits.

    What is written for it below `staging` is deleted again.
    """
    if not isinstance(staging, Path):
        answer = Answer(table=opened.version.table, verdict=NOT_WITNESSED, why=IN_A_STORE)
        return Witnessed(answer=answer, position=dict(pin.position), at=at)
    folder, table = staging / "witness" / opened.version.table, opened.version.table
    run.progress(0, 1, "comparisons", f"waiting to have another engine evaluate {table}", span=1)
    with one_at_a_time(run):
        run.progress(0, 1, "comparisons", f"having another engine evaluate {table}", span=1)
        answer = _asked(opened, pin, run, folder)
        if answer.is_gone:
            run.say(f"a file that another engine reads for {table} is gone: asking it again")
            pin = again()
            answer = _asked(opened, pin, run, folder)
    return Witnessed(answer=answer, position=dict(pin.position), at=at)


def one_at_a_time(run: Run) -> AbstractContextManager[None]:
    """Nobody else asks the other engine meanwhile."""
    return holding(_asking, "another engine to end other evaluations", WAIT_S, run)


def _asked(opened: Opened, pin: Pin, run: Run, folder: Path) -> Answer:
    try:
        if folder.exists():  # of an attempt that was killed
            store.delete_tree(folder)
        return _answer(opened, pin, folder, run.cancelled.is_set)
    except Exception as error:
        run.check_cancelled()
        if any(word in str(error) for word in _GONE):
            return Answer(table=opened.version.table, verdict=NOT_WITNESSED, why=GONE)
        why = f"it was not asked: {one_line(error, LONGEST)}"
        return Answer(table=opened.version.table, verdict=FAILED, why=why)
    finally:
        with suppress(OSError):
            store.delete_tree(folder)


def _answer(opened: Opened, pin: Pin, folder: Path, is_stopped: Callable[[], bool]) -> Answer:
    asked, end = question(opened, pin, folder), time.monotonic() + LIMITS.seconds
    if why := _deleted(opened):  # asked once the files are named: what is deleted from now on is read still
        return Answer(table=opened.version.table, verdict=NOT_WITNESSED, why=why)
    answer = witness(asked, LIMITS, is_stopped=is_stopped)
    if answer.refused and isinstance(opened, MaintainedVersion):
        stepped = _stepped(opened, pin)
        if stepped is not None:
            asked = replace(asked, stepped=_rows(stepped, folder / "stepped"))
            # both times together have the time of one
            left = replace(LIMITS, seconds=max(end - time.monotonic(), 1.0))
            return witness(asked, left, is_stopped=is_stopped)
    return answer


def _deleted(opened: Opened) -> str:
    """Why the engine cannot know what the version has counted; empty where its records are there."""
    counted = [opened] if isinstance(opened, MaintainedVersion) else []
    if isinstance(opened, LogView) and opened.definition.reads_states:
        counted = feeds(opened)
    for feed in counted:
        start = feed.log.start
        if start is not None and start.states_of(feed.version) is not None:
            return f"retention has deleted the records of topic {feed.topic} up to batch {start.batch}"
    return ""


def _stepped(opened: MaintainedVersion, pin: Pin) -> DataFrame | None:
    """What Spark makes of the records by the definition's expressions; the engine does the rest. They are
    written to a disk, so not of a long log."""
    if rows_in(opened.log.metadata().get("counts", {})) > STEPPED_ROWS:
        return None
    return opened.definition.after_steps(opened.log.rows(0, pin.position[opened.topic]))


def question(opened: Opened, pin: Pin, folder: Path) -> Question:
    """All that the engine may know: the version's rows, and what it reads of other tables, are written below
    `folder`."""
    definition = opened.definition
    reads: dict[str, ReadTable] = {}
    for name, read in opened.reads.items() if isinstance(opened, LogView) else ():
        shown = None if definition.reads_states else _written(read, pin.reads[name], folder / "reads" / name)
        reads[name] = ReadTable(definition=read.definition.to_json(), shown=shown)
    return Question(
        definition=definition.to_json(),
        topics={name: _topic(log, pin) for name, log in opened.logs.items()},
        shown=_written(opened, pin, folder / "shown"),
        reads=reads,
        late=_late(opened, pin, folder / "late"),
    )


def _late(opened: Opened, pin: Pin, folder: Path) -> Rows | None:
    """What the view of late records shows at the pin; None for a table that has none."""
    if not isinstance(opened, MaintainedVersion):
        return None
    log = opened.log
    until = f"(SELECT * FROM {relation_sql(log.path)} WHERE batch <= {pin.position[opened.topic]})"
    text = opened.definition.late(f"({log.late_sql(until)})")
    return None if text is None else _rows(opened.spark.sql(text), folder)


def _written(opened: Readable, pin: Pin, folder: Path) -> Rows:
    return _rows(opened.view(pin), folder)


def _rows(found: DataFrame, folder: Path) -> Rows:
    """Spark writes one file at least; none here were written on another machine's disk."""
    found.write.parquet(str(folder))
    files = tuple(map(str, sorted(folder.glob("*.parquet"))))
    if not files:
        raise NotFoundError(
            f"no rows are in {folder}", "Spark's executors have another disk",
            "have them share the lake's folder",
        )  # fmt: skip
    return Rows(files=files, columns=tuple(found.dtypes))


def _topic(log: Log, pin: Pin) -> TopicLog:
    name, topic = log.topic.name, log.topic
    clocks: Mapping[str, int | None] = pin.clocks.get(name, {})
    return TopicLog(
        contract=topic.contract.to_json(),
        fields=tuple(map(Field.of, topic.newest.fields)),
        files=log.data_files(),
        position=pin.position[name],
        event=log.event(),
        met={number: tuple(names) for number, names in log.met().items()},
        watermark=pin.watermarks.get(name),
        clocks={clock: clocks.get(clock) for clock in (LOG_APPEND_TIME, PROCESSING_TIME)},
    )  # fmt: skip
