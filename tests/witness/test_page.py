"""docs/witness.md lists what the witness takes, and nothing else by a function's name."""

from __future__ import annotations

import re

from tests.project import PROJECT
from twinlake.witness.expressions import FUNCTIONS
from twinlake.witness.rules import windows
from twinlake.witness.rules.aggregates import AGGREGATES

NOT_TAKEN = {"pow", "exp", "ln"}
"""Of which the page says that they are not."""
NODES = {"if", "from_utc_timestamp"}


def test_the_page_lists_every_function() -> None:
    page = (PROJECT / "docs" / "witness.md").read_text()
    listed = set(re.findall(r"`([a-z_0-9]+)`", page[page.index("## What it takes") :]))
    taken = {*FUNCTIONS, *AGGREGATES, *windows.RANKS, *windows.SHIFTS, *windows.ENDS} | NODES

    assert listed == taken | NOT_TAKEN
