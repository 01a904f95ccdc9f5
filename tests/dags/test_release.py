"""The release DAG plans the definitions that it is given, else the lake server's; what an approver reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from markdown_it import MarkdownIt

from twinlake.airflow import release as dag_file


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


def test_a_text_of_the_plan_adds_no_line_and_turns_none_round() -> None:
    """A definition is written by whoever asks for the approval."""
    line = "t: where: a\n\n- gate: 9 checks passed \u202eyadot"

    assert dag_file.as_list([line]).count("\n") == 0 and "\u202e" not in dag_file.as_list([line])


def test_the_line_of_a_difference_has_its_counts() -> None:
    columns = [{"name": "sales", "changed": 90}, {"name": "smallest", "changed": 0}]
    diff = {"table": "t", "common": 1000, "changed": 100, "only_blue": 3, "only_green": 0, "columns": columns}

    assert dag_file.difference_lines([diff]) == [
        "t: 900 rows the same, 100 changed, 3 only in blue, 0 only in green; changed columns: sales (90)"
    ]
    assert dag_file.difference_lines([{**diff, "blue_raises": "column a raises"}])[1:] == [
        "  blue cannot be read, and counts as NULL where it raises: column a raises"
    ]


MADE = {"id": "p", "empty": False, "changes": [], "lines": ["plan p: from release 1", "t: changed"]}


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The task `plan`, run here: `plan(made, definitions)` with what the lake server answers.

    `plan.asked` has what it was asked.
    """

    def run(
        made: dict[str, Any], definitions: dict[str, Any] | None = None, tables: list[str] | None = None
    ) -> Any:
        def answer(kind: str, params: dict[str, Any]) -> dict[str, Any]:
            asked.append((kind, params))
            return made

        monkeypatch.setattr(dag_file, "run_job", answer)
        context = {"params": {"definitions": definitions, "tables": tables}}
        monkeypatch.setattr(dag_file, "get_current_context", lambda: context)
        return dag_file.release_dag().get_task("plan").python_callable()

    asked: list[tuple[str, dict[str, Any]]] = []
    run.asked = asked  # type: ignore[attr-defined]
    return run


def test_without_definitions_the_lake_server_takes_its_own(plan: Callable[..., Any]) -> None:
    plan(MADE)
    plan(MADE, {})  # as a form shows nothing
    plan(MADE, {"t": {"kind": "aggregate"}})

    plan(MADE, None, ["t", "u"])

    given = {"definitions": {"t": {"kind": "aggregate"}}}
    asked = [("plan", {}), ("plan", {}), ("plan", given), ("plan", {"tables": ["t", "u"]})]
    assert plan.asked == asked  # type: ignore[attr-defined]


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
