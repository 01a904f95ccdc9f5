"""What a tutorial's page has a reader do is understood whole, or not at all."""

from __future__ import annotations

import pytest

from tests.tutorials.steps import (
    BELOW,
    Cell,
    Command,
    Edit,
    PageError,
    Picture,
    Press,
    Shown,
    Step,
    Write,
    steps,
)


def of(page: str, *, is_notebook: bool = False) -> list[Step]:
    return steps(page, is_notebook=is_notebook)


def block(language: str, *lines: str) -> str:
    return "\n".join([f"```{language}", *lines, "```", ""])


def test_each_line_of_a_shell_block_is_a_command_and_its_comment_is_for_people() -> None:
    page = "Then:\n\n" + block("shell", "cd shop && twinlake up   # a minute", "twinlake query 'SELECT #'")

    assert of(page) == [Command(line="cd shop && twinlake up"), Command(line="twinlake query 'SELECT #'")]


def test_a_comment_says_what_to_wait_for_and_how_a_command_ends() -> None:
    page = block("shell", "twinlake status # again, until it shows 1,000", "twinlake diff # ends with 1: so")

    assert of(page) == [
        Command(line="twinlake status", until=Shown(lines=("1,000",))),
        Command(line="twinlake diff", ends_with=1),
    ]


def test_a_file_is_named_at_the_end_of_the_paragraph_before_it() -> None:
    page = "Write this into\n`a/b.yaml`:\n\n" + block("yaml", "a: 1", "", "b: 2")

    assert of(page) == [Write(path="a/b.yaml", text="a: 1\n\nb: 2\n")]


def test_a_diff_replaces_lines_that_are_in_the_file_once() -> None:
    (edit,) = of("In `t.py`:\n\n" + block("diff", " keys", "-size=1", "+size=2", "+where"))

    assert edit == Edit(path="t.py", before=("keys", "size=1"), after=("keys", "size=2", "where"))
    assert edit.of("a\nkeys\nsize=1\nb\n") == "a\nkeys\nsize=2\nwhere\nb\n"
    for text in ("keys\nsize=10\n", "keys\nsize=1\nkeys\nsize=1\n", " keys\nsize=1\n"):
        with pytest.raises(PageError, match=r"t\.py has these lines [02] times"):
            edit.of(text)


def test_what_is_shown_is_in_the_output_line_by_line_in_order_and_dots_are_anything() -> None:
    (_, shown) = of(block("shell", "ls") + "\n" + block("text", "page    visits", "/       4...", "... done"))

    assert isinstance(shown, Shown)
    assert shown.missing("x\n  page visits\n/  418\n/docs  1\nit is done\n") is None
    assert shown.missing("/ 418\npage visits\nit is done\n") == "/ 4..."
    assert shown.missing("page visits\n/ 418 \n") == "... done"
    assert shown.missing("page visits of today\n") == "page visits"


def test_a_command_may_wait_for_the_text_behind_it() -> None:
    page = block("shell", "twinlake status # again, until it shows this") + "\n" + block("text", "a", "b")

    shown = Shown(lines=("a", "b"))
    assert of(page) == [Command(line="twinlake status", until=shown), shown]
    assert shown != BELOW


def test_python_is_a_cell_in_a_notebook_alone() -> None:
    page = "Read it:\n\n" + block("python", "1 + 1") + "\n" + block("text", "2")

    assert of(page, is_notebook=True) == [Cell(code="1 + 1\n"), Shown(lines=("2",))]
    with pytest.raises(PageError, match="line 3: no paragraph"):
        of(page)


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("# A\n\n" + block("", "twinlake up"), "line 3: a block without a language is no step"),
        (block("bash", "twinlake up"), "bash is no step"),
        ("So:\n\n    twinlake up\n", "line 3: an indented block"),
        (block("yaml", "a: 1"), "no paragraph that ends with `PATH`: is before this block of yaml"),
        ("In `a.py`:\n\n" + block("python", "1") + "\n" + block("python", "2"), "line 7: no paragraph"),
        ("With `twinlake[all]`:\n\n" + block("json", "1"), "block of json"),
        ("In `a.py` is:\n\n" + block("diff", "+b"), "block of diff"),
        ("In `a.py`:\n\n" + block("diff", "+b"), "the diff says no place"),
        ("In `a.py`:\n\n" + block("diff", " b"), "changes nothing"),
        ("In `a.py`:\n\n" + block("diff", "@@ b"), "not '@@ b'"),
        (block("text", "a"), "no command before it"),
        ("In `a.py`:\n\n" + block("python", "1") + "\n" + block("text", "a"), "no command before it"),
        (block("shell", "twinlake up  # again, until it is there"), "does not say `again, until it shows"),
        (block("shell", "ls # again, until it shows this", "cd a"), "there is no block of text behind"),
        (block("shell", "ls # again, until it shows this"), "there is no block of text behind"),
        (block("shell", "# twinlake up"), "is not a command"),
        (block("shell", "twinlake \\", "up"), "is not a command"),
        (block("shell", "", "twinlake up"), "is not a command"),
    ],
)
def test_what_no_rule_understands_is_an_error(page: str, why: str) -> None:
    with pytest.raises(PageError) as raised:
        of(page)

    assert why in str(raised.value)


def test_what_is_bold_in_a_numbered_list_is_pressed_and_a_picture_there_is_taken() -> None:
    page = (
        "Not **this**.\n\n1. Open **Dags**, then `x`:\n\n   ![seen](../pictures/seen.png)\n"
        "2. Again **Go on**.\n\n**Nor** this.\n"
    )

    assert of(page) == [Press(label="Dags"), Picture(name="seen.png"), Press(label="Go on")]
