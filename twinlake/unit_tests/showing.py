"""Owns how a difference is shown: expected and got side by side, with the first difference marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinlake.base.errors import visible
from twinlake.unit_tests.matching import Pair
from twinlake.unit_tests.values import shown

MOST = 10
"""So many rows that differ are shown; all of them are counted."""
_WIDEST, _BEFORE = 60, 20
_MARK, _FIRST = "!", ">"


def differing_rows(what: str, pairs: Sequence[Pair], expected: int, got: int) -> list[str]:
    """Lines for a person: of each row that differs, is missing or was not expected, its columns."""
    lines = [f"{what}: {expected} expected, {got} got, {len(pairs)} of them differ"]
    is_first = True
    for pair in pairs[:MOST]:
        lines += ["", *_row(pair, is_first)]
        is_first = False
    if len(pairs) > MOST:
        lines += ["", f"and {len(pairs) - MOST} more"]
    return lines


def side_by_side(
    rows: Sequence[tuple[str, str, str]], marked: Sequence[bool], is_first: bool
) -> Iterator[str]:
    """Rows of (name, expected, got), those that are marked with a sign; the first of all with where they
    part."""
    cells = [tuple(map(visible, row)) for row in rows]
    widths = [max(len(row[at]) for row in cells) for at in range(2)]
    for row, is_marked in zip(cells, marked, strict=True):
        mark = (_FIRST if is_first else _MARK) if is_marked else " "
        yield f"{mark} {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip()
        if is_marked and is_first:
            is_first = False
            yield from _parting(row, widths)


def _parting(row: tuple[str, ...], widths: Sequence[int]) -> Iterator[str]:
    """A line with a sign below the first character in which two values differ."""
    expected, got = row[1], row[2]
    at = next((n for n, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b), None)
    if at is None:
        at = min(len(expected), len(got))
    left = 2 + widths[0] + 2
    line = " " * (left + at) + "^"
    yield line + " " * (left + widths[1] + 2 + at - len(line)) + "^"


def _row(pair: Pair, is_first: bool) -> Iterator[str]:
    if pair.expected is None:
        assert pair.got is not None
        yield "not expected:"
        rows = [(name, "", _cell(value)) for name, value in pair.got.items()]
        yield from side_by_side([("", "expected", "got"), *rows], [False] * (len(rows) + 1), False)
        return
    at = f" (line {pair.part.line})" if pair.part else ""
    if pair.got is None:
        yield f"missing{at}:"
        rows = [(name, _cell(value), "") for name, value in pair.expected.items()]
        yield from side_by_side([("", "expected", "got"), *rows], [False] * (len(rows) + 1), False)
        return
    yield f"different{at}:"
    rows, marked = [("", "expected", "got")], [False]
    for name, value in pair.expected.items():
        rows.append((name, *_cells(value, pair.got[name])))
        marked.append(name in pair.differing)
    yield from side_by_side(rows, marked, is_first)


def _cell(value: object) -> str:
    return _cut(shown(value))


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _cells(expected: object, got: object) -> tuple[str, str]:
    """Both, from a little before where they part, so that what differs is not cut off."""
    one, other = shown(expected), shown(got)
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if at is None or at < _WIDEST // 2 or max(len(one), len(other)) <= _WIDEST:
        return _cut(one), _cut(other)
    return _cut("…" + one[at - _BEFORE :]), _cut("…" + other[at - _BEFORE :])
