"""Checkpoints are made one after the other, however fast commits come."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from twinlake.base.waiting import wait_for
from twinlake.lake.delta import checkpoints
from twinlake.lake.delta.table_state import whole_checkpoints


def test_those_that_wait_for_their_turn_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()
    made: list[str] = []
    table = checkpoints.DeltaTable

    def slow(path: str) -> Any:
        begun.release()
        assert go_on.wait(30)
        made.append(path)
        return table(path)

    monkeypatch.setattr(checkpoints, "DeltaTable", slow)
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        write_deltalake(str(path), pa.table({"n": [1]}))
    checkpoints.make(one)
    assert begun.acquire(timeout=30), "the first is under way"
    for _ in range(50):
        checkpoints.make(one)
        checkpoints.make(other)
    write_deltalake(str(one), pa.table({"n": [2]}), mode="append")

    go_on.set()
    wait_for("all that was asked for", lambda: len(made) == 3 or None, 30)
    assert made == [str(one), str(one), str(other)]
    newest = wait_for("the last", lambda: next(whole_checkpoints(other / "_delta_log"), None), 30)
    assert newest.version == 0
    assert next(whole_checkpoints(one / "_delta_log")).version == 1, "it has the commit made meanwhile"
