"""Checkpoints of Delta tables: with them nobody reads more than some commit files.

deltalake makes them beside the work, without an executor.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import structlog
from deltalake import DeltaTable

from twinlake.base.location import Location
from twinlake.lake.delta import checkpoint_files, delta
from twinlake.lake.storage import store

EVERY_COMMITS = 100

journal = structlog.get_logger(__name__)
_worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
_waiting: set[Location] = set()
_lock = threading.Lock()


def due(version: int) -> bool:
    return version > 0 and version % EVERY_COMMITS == 0


def make(path: Location) -> None:
    """Begins to write one of the newest version; a failure is logged, and the next one comes soon.

    One that waits for its turn will do for all commits until then: commits may come faster.
    """
    with _lock:
        if path in _waiting:
            return
        _waiting.add(path)
    _worker.submit(_make, path)


def write(path: Location) -> None:
    """One of the newest version, unless there is one; DamagedError where a commit is torn, which it would
    lack for ever."""
    delta.refuse_torn(path)
    table = DeltaTable(str(path))
    file = checkpoint_files.file_of(path / delta.LOG_FOLDER, table.version())
    if not store.exists(file):
        table.create_checkpoint()
        checkpoint_files.sum_up(file)


def _make(path: Location) -> None:
    with _lock:
        _waiting.discard(path)
    try:
        write(path)
    except Exception as error:
        journal.warning("no checkpoint was made", table=str(path), why=repr(error))
