"""The text of definitions: Python reads it as the definitions that it was written of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin import AGES, LOGS
from tests.project import EXAMPLES, TABLES
from twinlake import Aggregate, Avg, Count, Derived, Explode, Hopping, Quantile, Tumbling
from twinlake.kinds.kind import Kind
from twinlake.scaffold.definition_text import module_text

NASTY = Aggregate(
    name="a", inputs=("t",), explode=Explode(name="e", array="split(x, '\\\\s')"), where="x <> 'ü\"\"\"\n'",
    columns={"u": "e", "at": "at"}, keys=(), window=Hopping(on="at", size="2 minutes", every="1 minute"),
    measures={"n": Count(), "m": Count("u"), "q": Quantile("u", (0.5, 0.9)), "p": Quantile("u", q=0.1)},
)  # fmt: skip
ALL = {
    one.name: one for one in (*TABLES, *(one for tables in EXAMPLES.values() for one in tables), AGES, LOGS)
}


def read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(compile(text, "written.py", "exec"), found)
    return found


@pytest.mark.parametrize("table", ALL.values(), ids=ALL)
def test_every_definition_of_the_project_and_the_gallery_is_read_back_from_its_text(table: Kind) -> None:
    text = module_text([table], "A table.")

    assert read(text)["TABLE"] == table and max(map(len, text.splitlines())) <= 320
    assert text.startswith('"""A table."""\n\nfrom t')


def test_texts_with_quotes_and_ends_of_line_are_read_back() -> None:
    assert read(module_text([NASTY], "A table."))["TABLE"] == NASTY


def test_tables_beside_the_asked_one_are_listed_so_that_they_are_found() -> None:
    counts = Aggregate(
        name="counts", inputs=("t",), columns={"k": "k", "at": "at", "n": "n"}, keys=("k",),
        window=Tumbling(on="at", size="1 minute"), measures={"n": Avg("n")},
    )  # fmt: skip
    top = Derived(
        name="top",
        reads=("counts",),
        columns=("k",),
        keys=("k",),
        by=(),
        sql="\n    SELECT k\n    FROM counts\n",
    )

    text = module_text([counts, top], "Two tables.")

    assert (read(text)["TABLE"], read(text)["TABLES"]) == (top, (counts,))
    assert (
        text
        == '''"""Two tables."""

from twinlake import Aggregate, Avg, Derived, Tumbling

COUNTS = Aggregate(
    name="counts",
    inputs=("t",),
    columns={"k": "k", "at": "at", "n": "n"},
    keys=("k",),
    window=Tumbling(on="at", size="1 minute"),
    measures={"n": Avg("n")},
)
TABLE = Derived(
    name="top",
    reads=("counts",),
    columns=("k",),
    keys=("k",),
    by=(),
    sql="""
    SELECT k
    FROM counts
""",
)
TABLES = (COUNTS,)
'''
    )
