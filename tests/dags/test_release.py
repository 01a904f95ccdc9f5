"""The release DAG releases what jobs/tables says when it runs, or the definitions it is given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import release as dag_file
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from markdown_it import MarkdownIt

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


def test_the_approval_shows_the_very_characters_of_the_plan() -> None:
    """Four blanks make code of a Markdown line, in which the signs that hide signs are shown."""
    lines = ["t: changed", "    where: nothing -> status <> 'cancelled'", "    next: *", "u: new"]
    tokens = MarkdownIt().parse(dag_file.as_list(lines))

    shown = [
        "".join(one.content for one in token.children or []) for token in tokens if token.type == "inline"
    ]
    assert shown == [line.strip() for line in lines]
    assert not [token for token in tokens if token.type in ("code_block", "fence", "html_block")]
    assert [token.level for token in tokens if token.type == "inline"] == [3, 5, 5, 3]


def test_the_line_of_a_difference_has_its_counts() -> None:
    columns = [{"name": "sales", "changed": 90}, {"name": "smallest", "changed": 0}]
    diff = {"table": "t", "common": 1000, "changed": 100, "only_blue": 3, "only_green": 0, "columns": columns}

    assert dag_file.difference_lines([diff]) == [
        "t: 900 rows the same, 100 changed, 3 only in blue, 0 only in green; changed columns: sales (90)"
    ]


MADE = {"id": "p", "empty": False, "changes": [], "lines": ["plan p: from release 1", "t: changed"]}


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The task `plan`, run here: `plan(made, definitions)` with what the lake server answers."""

    def run(made: dict[str, Any], definitions: dict[str, Any] | None = None) -> Any:
        monkeypatch.setattr(dag_file, "run_job", lambda kind, params: {"plan": made}[kind])
        context = {"params": {"definitions": definitions}}
        monkeypatch.setattr(dag_file, "get_current_context", lambda: context)
        return dag_file.release().get_task("plan").python_callable()

    return run


def test_the_plan_s_lines_are_logged_and_handed_on(
    plan: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger=dag_file.log.name):
        handed_on = plan(MADE)

    assert caplog.messages == MADE["lines"]
    assert handed_on == {"id": "p", "changes": [], "lines": MADE["lines"]}


def test_a_plan_that_changes_nothing_ends_the_run_as_skipped(plan: Callable[..., Any]) -> None:
    with pytest.raises(AirflowSkipException, match="plan p changes nothing"):
        plan({**MADE, "empty": True})


def test_definitions_that_are_none_are_not_tried_again(plan: Callable[..., Any]) -> None:
    with pytest.raises(AirflowFailException, match="unknown table kind"):
        plan(MADE, {"t": {"kind": "nothing"}})
