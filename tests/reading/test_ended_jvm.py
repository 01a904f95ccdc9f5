"""A SQL server whose JVM has ended, and whose process is about to: it says that it starts again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from tests.reading.conftest import Released, SqlServer, started
from tests.reading.test_heavy import MINUTES, SHORT
from twinlake.base.waiting import wait_for
from twinlake.reading.wire import ARROW

HELD = """
import sys
from twinlake.reading import __main__ as sql_server
sql_server.end_together = lambda jvm: None
sys.exit(sql_server.main())
"""
"""Makes the moment last."""


@pytest.fixture
def held(released: Released, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    scratch = tmp_path_factory.mktemp("held")
    server = SqlServer(home=released.lake.parent, scratch=scratch, program=("-c", HELD))
    with started(server):
        yield server


@pytest.mark.faults
def test_statements_are_to_be_sent_again_when_the_jvm_has_been_killed(held: SqlServer) -> None:
    jvm = held.jvm()
    with ThreadPoolExecutor(1) as others:
        running = others.submit(held.ask, MINUTES)
        held.until_busy()
        jvm.kill()
        wait_for("it to end", lambda: jvm.status() == psutil.STATUS_ZOMBIE or None, 60)
        answers = [held.ask(SHORT), held.ask(SHORT, Accept=ARROW), running.result()]

    assert [told(answer) for answer in answers] == [(503, "1", "BusyError", "the SQL server is starting")] * 3
    assert "JVM has ended" in answers[0].json()["why"]


def told(answer: httpx.Response) -> tuple[int, str | None, str, str]:
    said = answer.json()
    return answer.status_code, answer.headers.get("Retry-After"), said["error"], said["what"]
