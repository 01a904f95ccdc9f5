"""What an attempt has written down is gone on with as a whole, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from twinlake.batch.attempt import Attempt
from twinlake.batch.due import WHOLE
from twinlake.kinds.windows import ALL
from twinlake.lake.catalog.certificates import NOTHING
from twinlake.lake.catalog.segments import Closed
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta.appender import Appender


def test_an_attempt_that_another_twinlake_has_written_has_done_nothing(tmp_path: Path) -> None:
    """What it had replaced was left out, and certified as equal without a comparison."""
    write_deltalake(str(tmp_path / "table"), pa.table({"n": pa.array([], pa.int64())}))
    topic = SimpleNamespace(newest=SimpleNamespace(fingerprint="f"), contract=SimpleNamespace(version="1"))
    feed: Any = SimpleNamespace(
        appender=Appender(tmp_path / "table", []), batch_writer="batch", path=tmp_path / "table", version="v",
        spark=SimpleNamespace(version="4"), log=SimpleNamespace(topic=topic, start=None),
    )  # fmt: skip
    version: Any = "v"
    closed = Closed(pin=Pin(version=version, position={"orders": 1}, delta_version=0), through=0, records=1)
    file = tmp_path / "attempt.json"

    def attempt() -> Attempt:
        return Attempt(file, "job", feed, closed, "due")

    first = attempt()
    first.cut(WHOLE, [ALL])
    feed.appender.commit([], "batch", 1, {"kind": "rebuild", "job": "job", "epoch": 1})
    first.replaced(ALL, NOTHING)
    assert attempt().done(ALL)

    stored = json.loads(file.read_text())
    del stored["parts"]
    file.write_text(json.dumps(stored))
    again = attempt()
    assert (again.scope, again.parts, again.done(ALL)) == (None, [], False)
