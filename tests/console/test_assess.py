"""What needs a person, from alarms and figures: each once, and nothing that is silenced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.console.conftest import STATUS, VERSION
from twinlake.alarms.alarm import Alarm
from twinlake.console.assess import assess
from twinlake.console.figures import Seen, Services
from twinlake.console.pages import lines

WELL = Services(parts=[], supervisor=None, disk_free=900 << 30, disk_total=1000 << 30)
LATE = Alarm(
    kind="freshness", title="sales", about="sales", what="it is 12 minutes behind what Kafka has",
    why="its contract allows 30 s", remedy="", since="2026-01-31T11:00:00Z",
)  # fmt: skip


def test_lines_of_a_text_stay_lines_and_nothing_else_of_it_is_hidden() -> None:
    assert lines("a <b>\n`twinlake up`\r\n\u202ec") == ("a &lt;b&gt;\n<code>twinlake up</code>\\r\n\\u202ec")


def needs(*alarms: Alarm, **status: Any) -> list[tuple[str, str]]:
    seen = Seen(value={**STATUS, **status}, age_s=1.0)
    found = assess(Seen(value=WELL, age_s=1.0), seen, alarms)
    return [(one.title, one.what) for one in found.needs]


def test_an_alarm_is_a_need_unless_it_is_silenced() -> None:
    assert needs(LATE) == [("sales", LATE.what)]
    assert needs(replace(LATE, silenced=True)) == []


@pytest.mark.parametrize(
    ("what", "needs_a_person"),
    [("it takes no records for 13 minutes", False), ("it is damaged since 12 minutes", True)],
    ids=["the same, longer", "another"],
)
def test_what_is_silenced_stays_so_while_its_figures_change(what: str, needs_a_person: bool) -> None:
    silenced = replace(LATE, kind="stalled", what="it takes no records for 12 minutes", silenced=True)
    error = {"what": what, "why": "a division by zero", "remedy": ""}
    (found,) = needs(versions=[{**VERSION, "stalled": True, "error": error}])

    quiet = replace(silenced, title=found[0], what=found[1].replace("13", "12"))
    other = replace(silenced, title=found[0], what=found[1].replace("damaged", "stopped"))

    shown = needs(other if needs_a_person else quiet, versions=[{**VERSION, "stalled": True, "error": error}])
    assert (found in shown) is needs_a_person
