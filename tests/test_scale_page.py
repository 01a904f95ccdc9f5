"""docs/scale.md multiplies figures of other pages: what it quotes still stands there."""

from __future__ import annotations

import re

from tests.project import PROJECT

DOCS = PROJECT / "docs"
PAGE = (DOCS / "scale.md").read_text()
QUOTE = re.compile(r"\[[^\]]+\]\(([^)]+)\) \"([^\"]+)\"")


def test_every_figure_that_is_quoted_stands_where_it_is_said_to_stand() -> None:
    quotes = QUOTE.findall(PAGE.partition("## What goes in")[2])

    assert len(quotes) >= 12
    assert [one for one in quotes if one[1] not in (DOCS / one[0]).read_text()] == []


def test_every_figure_that_goes_in_names_its_place() -> None:
    table = re.search(r"## What goes in\n\n(.*?)\n\n", PAGE, re.DOTALL)

    assert table
    rows = table[1].splitlines()[2:]
    assert [row for row in rows if not QUOTE.search(row) and "assumed" not in row] == []


def test_the_sizes_are_what_their_formulas_give() -> None:
    table = re.search(r"## Four sizes\n.*?\|---.*?\n(.*?)\n\n", PAGE, re.DOTALL)
    assert table
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table[1].splitlines()]
    given, sums = rows[:3], rows[3:]
    sizes = [
        dict(zip("rNF", map(number, column), strict=True)) for column in [*zip(*given, strict=True)][1:5]
    ]

    wrong = [
        (row[0], size)
        for row in sums
        for size, shown in zip(sizes, row[1:5], strict=True)
        if abs(eval(row[5].strip("`"), {}, size) / number(shown) - 1) > 0.06
    ]
    assert len(sums) >= 12 and wrong == []


def number(text: str) -> float:
    """`1.3 million` and `8,640`."""
    figure, _, word = text.replace(",", "").partition(" ")
    return float(figure) * {"": 1.0, "million": 1e6, "billion": 1e9}[word]
