"""Which row is meant by an expected one."""

from __future__ import annotations

from pathlib import Path

from twinlake.unit_tests.matching import differences, expected
from twinlake.unit_tests.source import read
from twinlake.witness.rows import Found
from twinlake.witness.types import Type

TYPES = {"a": Type.parse("bigint"), "b": Type.parse("bigint")}


def found(*rows: tuple[int, int]) -> Found:
    return Found(keys=(), types=TYPES, rows=rows)


def wanted(tmp_path: Path, text: str, got: Found) -> list[tuple[object, object]]:
    file = tmp_path / "x.test.yaml"
    file.write_text(text)
    return expected(read(file).items(), got, "x")  # type: ignore[return-value]


def test_a_row_that_one_expectation_alone_can_have_is_left_to_it(tmp_path: Path) -> None:
    got = found((1, 1), (1, 2), (2, 2))
    rows = wanted(tmp_path, "- {b: 2}\n- {a: 1}\n- {a: 1, b: 2}\n", got)

    assert differences(rows, got) == []  # type: ignore[arg-type]


def test_thousands_of_equal_rows_are_met_each_by_one(tmp_path: Path) -> None:
    got = found(*[(1, 1)] * 1_500)
    rows = wanted(tmp_path, "- {a: 1}\n" * 1_501, got)

    (left,) = differences(rows, got)  # type: ignore[arg-type]

    assert left.got is None and left.expected == {"a": 1}
