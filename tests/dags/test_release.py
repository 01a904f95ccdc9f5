"""The release DAG releases what jobs/tables says when it runs, or the definitions it is given."""

from __future__ import annotations

import sys

import pytest
import release as dag_file

from jobs.errors import TwinlakeError
from jobs.tables import TABLES


def test_without_definitions_it_reads_those_of_the_project() -> None:
    assert dag_file.definitions(None) == {table.name: table.to_json() for table in TABLES}


def test_it_reads_them_anew_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = sys.modules["jobs.tables"]
    monkeypatch.setattr(stale, "TABLES", ())

    assert set(dag_file.definitions(None)) == {table.name for table in TABLES}
    assert sys.modules["jobs.tables"] is not stale


def test_given_definitions_are_checked() -> None:
    sales = next(table for table in TABLES if table.name == "sales_per_region").to_json()

    given = {"sales_per_region": {**sales, "where": "status <> 'cancelled'"}}
    assert dag_file.definitions(given) == given
    with pytest.raises(TwinlakeError, match="wher"):
        dag_file.definitions({"sales_per_region": {**sales, "wher": "status <> 'cancelled'"}})


def test_text_of_the_approval_cannot_become_markup() -> None:
    line = "where: a -> [x](http://evil) <b> `c` *d*"

    assert line.translate(dag_file.MARKDOWN) == (r"where: a \-\> \[x\]\(http://evil\) \<b\> \`c\` \*d\*")


def test_the_line_of_a_difference_has_its_counts() -> None:
    columns = [{"name": "sales", "changed": 90}, {"name": "smallest", "changed": 0}]
    diff = {"table": "t", "common": 1000, "changed": 100, "only_blue": 3, "only_green": 0, "columns": columns}

    assert dag_file.difference_lines([diff]) == [
        "t: 900 rows the same, 100 changed, 3 only in blue, 0 only in green; changed columns: sales (90)"
    ]
