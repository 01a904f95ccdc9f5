"""What becomes of a file on a disk that loses bytes, or in a backup that was copied while it was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession


def forget(spark: SparkSession) -> None:
    """What Delta knows of tables: it meets their files as another process does."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]


def flip(file: Path) -> None:
    """Bits of every column of a data file, none of its footer: it is as long as it was."""
    content = bytearray(file.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for place in range(4, len(content) - footer, 40):
        content[place] ^= 1
    file.write_bytes(content)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


OF_DATA: dict[str, tuple[Callable[[Path], None], str]] = {
    "other bytes": (flip, "expected: "),
    "missing": (Path.unlink, "it is not there"),
    "empty": (empty, "it has 0 bytes"),
    "cut": (cut, "it has "),
}
"""By name, how a data file is damaged, and what its error then says."""
OF_COMMITS: dict[str, Callable[[Path], None]] = {"empty": empty, "cut": cut}
