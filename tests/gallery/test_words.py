"""The gallery's words and log lines: every table shows what the oracle says, however history was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.gallery.cuts import shown, valid_records, wrong
from tests.oracle.gallery import words as oracle
from tests.project import EXAMPLES
from twinlake.kinds.kind import ViewClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_words_show_what_the_oracle_says(spark: SparkSession, seed: int) -> None:
    valid = valid_records("words", seed, 500)

    found = shown(spark, EXAMPLES["words"], valid, ViewClock(), seed)

    assert wrong(found, oracle.tables(valid, {})) == {}
    assert ("über",) in found["word_count"] and len(found["error_lines"]) > 20
    assert found["word_count"].keys() & found["line_words"].keys()  # words of both topics
