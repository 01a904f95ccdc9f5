"""A reader who never stops asking: one statement over two tables of one release, which only go forward."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.chaos.world import Journal
from tests.reading.conftest import SqlServer
from twinlake.lake.invariants import ReaderState

SQL = """SELECT (SELECT concat(min(tag), '-', max(tag)) FROM serve.totals) AS totals,
  (SELECT concat(min(tag), '-', max(tag)) FROM serve.visits) AS visits,
  (SELECT sum(records) FROM serve.totals) AS records,
  (SELECT count(*) FROM serve.orders) AS orders"""
PAUSE_S = 1.5


@dataclass(kw_only=True)
class Reader:
    sql: SqlServer
    journal: Journal
    answers: int = 0
    away: int = 0
    worst_s: float = 0.0
    seen: list[ReaderState] = field(default_factory=list)
    """Each release, with the tags of the rows of each table as its versions, as often as it changed."""
    ending: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        before: dict[str, Any] = {}
        answered = time.monotonic()
        while not self.ending.wait(PAUSE_S):
            try:
                answer = self.sql.ask(SQL)
            except httpx.HTTPError:
                self.away += 1
                continue
            if not answer.is_success:
                if answer.status_code == 503:  # it is starting
                    self.away += 1
                else:
                    self.journal.fault(f"a reader got {answer.status_code}: {answer.text[:500]}")
                continue
            self.worst_s = max(self.worst_s, time.monotonic() - answered)
            answered = time.monotonic()
            self.answers += 1
            told = answer.json()
            row = {"release": told.get("release"), **told["rows"][0]}
            self._judge(before, row)
            before = row

    def _judge(self, before: dict[str, Any], row: dict[str, Any]) -> None:
        tags = {table: frozenset(str(row[table]).split("-")) for table in ("totals", "visits")}
        if len(tags["totals"] | tags["visits"]) > 1:
            self.journal.fault(f"a mixture of releases: {row}")
        for name in ("release", "records", "orders"):
            if before and row[name] is not None and row[name] < before[name]:
                self.journal.fault(f"a step back: {name} {before[name]} then {row[name]}")
        state = ReaderState(release=row["release"], versions=tags)
        if self.seen[-1:] != [state]:
            self.seen.append(state)
