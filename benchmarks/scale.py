"""`make bench-scale`: what grows with ids, live files and commits; docs/scale.md computes with the figures.

No service and no Spark is needed: the index of duplicates, and the Delta log of a table as the lake server
keeps it. Of that table only `_delta_log` is there, because nothing that is measured reads a data file.
With `--lake FOLDER` also how many files and bytes the tables of a lake have by now.
Everything lies in `<state folder>/bench/scale`, the figures in `scale.json` there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from uuid import uuid4

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, Field, Schema

from twinlake.base.files import replace_file
from twinlake.cli.output import load_settings
from twinlake.ingest.duplicates import Duplicates, Seen
from twinlake.ingest.log_end import COUNTED, LogEnd
from twinlake.lake.delta import delta
from twinlake.lake.delta.appender import Added, Appender
from twinlake.lake.delta.ledger import Ledger
from twinlake.lake.delta.table_state import TableState
from twinlake.lake.log.log import BATCH, PRUNING

ASKED = 200_000
"""Ids of the largest batch that ingest looks at together."""
COMMITS = 200
LEDGER_APPENDS = 300
APP_ID = "bench"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--ids", type=int, default=30_000_000, help="in the index of duplicates")
    parser.add_argument("--files", type=int, default=50_000, help="live files of a table")
    parser.add_argument("--lake", type=Path, help="a lake whose tables are counted as well")
    asked = parser.parse_args()
    folder = load_settings().home / "bench" / "scale"
    shutil.rmtree(folder, ignore_errors=True)
    result: dict[str, object] = {
        "index": index(asked.ids),
        "delta_log": [delta_log(folder / str(files), files) for files in (100, asked.files)],
        "log_metadata_bytes": {partitions: metadata_bytes(partitions) for partitions in (4, 1000)},
        "ledger": ledger(folder / "ledger"),
    }
    shutil.rmtree(folder, ignore_errors=True)
    if asked.lake:
        result["tables"] = [held(path) for path in tables(asked.lake)]
    folder.mkdir(parents=True)
    replace_file(folder / "scale.json", json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    return 0


def index(ids: int) -> dict[str, float]:
    """The index with so many ids: bytes of each, and milliseconds to judge a batch of which none was seen."""
    random = np.random.default_rng(7)
    known = Duplicates(10**15, lambda _: _nobody())
    known.judge(*_drawn(random, 1))
    for _ in range(ids // ASKED):
        known.add(*_drawn(random, ASKED))
    took = []
    for _ in range(5):
        batch = _drawn(random, ASKED)
        began = time.perf_counter()
        known.judge(*batch)
        took.append(time.perf_counter() - began)
    held = sum(part.nbytes for chunk in known.chunks for part in (chunk.high, chunk.low, chunk.times))
    return {
        "ids": len(known), "bytes_per_id": round(held / len(known), 1), "chunks": len(known.chunks),
        "judged": ASKED, "judge_ms": round(median(took) * 1000),
    }  # fmt: skip


def _nobody() -> Seen:
    nothing = np.zeros(0, dtype=np.int64)
    return Seen(high=nothing, low=nothing, times=nothing)


def _drawn(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    high, low = random.integers(-(2**63), 2**63 - 1, size=(2, count))
    return high, low, np.zeros(count, dtype=np.int64)


def delta_log(path: Path, files: int) -> dict[str, float]:
    """A table with so many live files: its commits, its checkpoint, and who opens it."""
    appender = _table(path, files)
    took, sizes = [], []
    for _ in range(COMMITS):
        began = time.perf_counter()
        made = appender.commit([_added()], APP_ID, appender.transaction(APP_ID) + 1, {"kind": "step"})
        took.append(time.perf_counter() - began)
        log = appender.path / delta.LOG_FOLDER
        written = (log / f"{made.version:020d}{end}" for end in (".json", ".crc"))
        sizes.append(sum(file.stat().st_size for file in written))
    began = time.perf_counter()
    DeltaTable(str(path)).create_checkpoint()
    checkpoint_s = time.perf_counter() - began
    checkpoint = max(log.glob("*.checkpoint.parquet"))
    began = time.perf_counter()
    TableState(path)
    open_s = time.perf_counter() - began
    tracemalloc.start()
    state = TableState(path)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "live_files": len(state.files), "commit_ms": round(median(took) * 1000, 2),
        "commit_bytes": round(median(sizes)), "checkpoint_s": round(checkpoint_s, 2),
        "checkpoint_bytes_per_file": round(checkpoint.stat().st_size / len(state.files)),
        "open_s": round(open_s, 2), "bytes_in_memory_per_file": round(grown / len(state.files)),
    }  # fmt: skip


def _table(path: Path, files: int) -> Appender:
    """With the columns by which a log prunes."""
    path.mkdir(parents=True)
    DeltaTable.create(str(path), Schema([Field(name, "long") for name in PRUNING]))
    appender = Appender(path, [(name,) for name in PRUNING])
    appender.commit([_added() for _ in range(files)], APP_ID, 1, {"kind": "step"})
    DeltaTable(str(path)).create_checkpoint()
    return appender


def _added() -> Added:
    """What the commit of a data file with statistics says."""
    bounds = dict.fromkeys(PRUNING, 1_234_567_890_123)
    stats = {
        "numRecords": 500,
        "minValues": bounds,
        "maxValues": bounds,
        "nullCount": dict.fromkeys(PRUNING, 0),
    }
    return {
        "path": f"part-00000-{uuid4()}-c000.zstd.parquet", "partitionValues": {}, "size": 50_000,
        "modificationTime": time.time_ns() // 1_000_000, "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }  # fmt: skip


def metadata_bytes(partitions: int) -> int:
    """What every commit of a log says of where it stands in its topic, as text."""
    of_each = dict.fromkeys(range(partitions), 1_795_000_000_123_456)
    counts = dict.fromkeys(COUNTED, 1_000_000_000)
    end = LogEnd(
        topic="orders", batch=1_000_000, topic_id="x" * 22, topics={0: "x" * 22}, ends={0: of_each},
        seen=of_each, event_times=of_each, counted=of_each, watermark=1_795_000_000_123_456, counts=counts,
    )  # fmt: skip
    return len(json.dumps(end.metadata(BATCH, 1_000), separators=(",", ":")))


def ledger(path: Path) -> dict[str, float]:
    """An append to the ledger of jobs or of certificates, on and on."""
    facts, took = Ledger(path, pa.schema([("fact", pa.string())])), []
    for _ in range(LEDGER_APPENDS):
        began = time.perf_counter()
        facts.append([{"fact": "x" * 500}])
        took.append(time.perf_counter() - began)
    return {"appends": LEDGER_APPENDS, "append_ms": round(sum(took) / len(took) * 1000, 1)}


def tables(lake: Path) -> Iterator[Path]:
    """The logs and the versions that store rows."""
    for pattern in ("logs/*", "tables/*/*"):
        yield from sorted(path for path in lake.glob(pattern) if delta.exists(path))


def held(path: Path) -> dict[str, object]:
    """What a table of a lake has by now."""
    state, log = TableState(path, appends=False), path / delta.LOG_FOLDER
    rows = sum(json.loads(file.stats or "{}").get("numRecords", 0) for file in state.files.values())
    return {
        "table": "/".join(path.parts[-2:]), "version": state.version, "live_files": len(state.files),
        "live_bytes": state.bytes, "rows": rows, "files": sum(1 for _ in path.rglob("*.parquet")),
        "files_of_delta_log": sum(1 for _ in log.iterdir()),
        "bytes_of_delta_log": sum(file.stat().st_size for file in log.iterdir()),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
