"""The notebook that a reader may download has the cells of the page, which the tutorial's run runs."""

from __future__ import annotations

import json

from tests.tutorials.notebook import PAGE, notebook
from tests.tutorials.steps import Cell, steps


def test_the_notebook_is_the_page() -> None:
    assert PAGE.with_suffix(".ipynb").read_text() == notebook(PAGE.read_text()), "write it again: `make docs`"


def test_its_code_is_the_cells_in_their_order() -> None:
    made = json.loads(notebook(PAGE.read_text()))
    code = ["".join(one["source"]) + "\n" for one in made["cells"] if one["cell_type"] == "code"]

    assert code == [one.code for one in steps(PAGE.read_text(), is_notebook=True) if isinstance(one, Cell)]


def test_between_cells_is_markdown_without_links_into_the_site_and_without_what_one_sees() -> None:
    page = (
        "Read [it](../a.md) at [home](https://example.com):\n\n```python\n1\n```\n\n```text\n1\n```\n\nEnd.\n"
    )

    made = json.loads(notebook(page))

    assert [(one["cell_type"], "".join(one["source"])) for one in made["cells"]] == [
        ("markdown", "Read it at [home](https://example.com):"), ("code", "1"), ("markdown", "End."),
    ]  # fmt: skip
