"""What `make bench-scale` says it has measured is what it has made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field, Schema

from benchmarks import scale
from twinlake.lake.delta.appender import Appender


@pytest.mark.faults
def test_it_tells_of_as_many_ids_and_files_as_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["scale", "--ids", "400000", "--files", "10"])

    scale.main()

    told = json.loads((tmp_path / "bench/scale/scale.json").read_text())
    assert told["index"]["ids"] == 400_000
    assert [one["live_files"] for one in told["delta_log"]] == [100 + scale.COMMITS, 10 + scale.COMMITS]
    assert told["log_metadata_bytes"]["1000"] > told["log_metadata_bytes"]["4"]


def test_the_tables_of_a_lake_are_counted_with_their_rows_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "orders"
    path.mkdir(parents=True)
    DeltaTable.create(str(path), Schema([Field("batch", "long")]))
    Appender(path, [("batch",)]).commit([{**scale._added(), "size": 7}], "log", 1, {})

    (told,) = [scale.held(found) for found in scale.tables(tmp_path)]

    assert (told["table"], told["live_files"], told["live_bytes"], told["rows"]) == ("logs/orders", 1, 7, 500)
