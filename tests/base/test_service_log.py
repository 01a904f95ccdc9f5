"""What a server logs: one JSON object a line, whoever says it, with what it is about."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.project import PROJECT
from twinlake.base.times import parse_moment, utc_now

# In a process of its own: it configures the logging of the whole process.
SAID = """
import logging
import threading
from pathlib import Path

import structlog

journal = structlog.get_logger("twinlake.somewhere")  # as modules do, before the log is started

from twinlake.base import service_log

service_log.start()
library = logging.getLogger("library")

journal.info("a batch is there", topic="orders", batch=7, path=Path("/lake"))
library.warning("%s of %s", 1, 2, extra={"topic": "orders"})
with service_log.about({"job": "j1", "kind": "rebuild"}):
    journal.warning("inside", table="t")
    library.warning("inside a library")
    with service_log.about({"table": "u"}):
        journal.info("further inside")
    other = threading.Thread(target=lambda: journal.info("in another thread"))
    other.start()
    other.join()
journal.info("outside")
try:
    {}["nothing"]
except KeyError:
    journal.exception("it failed", topic="orders")
    library.exception("a library failed")
failing = threading.Thread(target=lambda: {}["nothing"], name="warm-up")
failing.start()
failing.join()
for chatty in service_log.CHATTY:
    logging.getLogger(chatty).info("chatter")
    logging.getLogger(chatty).warning("no chatter")
journal.info("two\\nlines, and \\u00e4")
library.debug("too fine")
"""


@pytest.fixture(scope="module")
def process() -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SAID], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True
    )


@pytest.fixture
def lines(process: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The lines in order, without their moments."""
    found = [json.loads(line) for line in process.stderr.splitlines()]
    for line in found:
        del line["timestamp"]
    return found


def said(lines: list[dict[str, Any]], event: str) -> dict[str, Any]:
    (found,) = (line for line in lines if line["event"] == event)
    return found


def test_a_line_has_its_level_its_logger_and_the_facts_that_it_was_given(lines: list[dict[str, Any]]) -> None:
    assert said(lines, "a batch is there") == {
        "event": "a batch is there", "level": "info", "logger": "twinlake.somewhere", "topic": "orders",
        "batch": 7, "path": "/lake",
    }  # fmt: skip


def test_a_line_of_a_library_has_the_same_form(lines: list[dict[str, Any]]) -> None:
    assert said(lines, "1 of 2") == {
        "event": "1 of 2", "level": "warning", "logger": "library", "topic": "orders",
    }  # fmt: skip


def test_the_timestamp_of_every_line_is_rfc_3339_in_utc(process: subprocess.CompletedProcess[str]) -> None:
    told = [json.loads(line)["timestamp"] for line in process.stderr.splitlines()]
    moments: list[datetime] = [parse_moment(text) for text in told]

    assert all(text.endswith("Z") for text in told)
    assert moments == sorted(moments)
    assert timedelta() <= utc_now() - moments[0] < timedelta(minutes=5)


def test_inside_about_every_line_carries_its_facts_those_of_libraries_too(
    lines: list[dict[str, Any]],
) -> None:
    about = {"job": "j1", "kind": "rebuild"}

    assert said(lines, "inside") == {
        "event": "inside", "level": "warning", "logger": "twinlake.somewhere", "table": "t", **about,
    }  # fmt: skip
    assert said(lines, "inside a library") == {
        "event": "inside a library", "level": "warning", "logger": "library", **about,
    }  # fmt: skip
    assert said(lines, "further inside") == {
        "event": "further inside", "level": "info", "logger": "twinlake.somewhere", "table": "u", **about,
    }  # fmt: skip


@pytest.mark.parametrize("event", ["outside", "in another thread"])
def test_outside_of_about_and_in_other_threads_no_line_carries_its_facts(
    lines: list[dict[str, Any]], event: str
) -> None:
    assert said(lines, event) == {"event": event, "level": "info", "logger": "twinlake.somewhere"}


@pytest.mark.parametrize(
    ("event", "logger"),
    [
        ("it failed", "twinlake.somewhere"), ("a library failed", "library"),
        ("thread warm-up ended by an error", "twinlake.base.service_log"),
    ],
)  # fmt: skip
def test_an_exception_is_told_in_its_own_field(lines: list[dict[str, Any]], event: str, logger: str) -> None:
    line = said(lines, event)

    assert (line["level"], line["logger"]) == ("error", logger)
    assert line["exception"].startswith("Traceback (most recent call last):")
    assert line["exception"].endswith("KeyError: 'nothing'")


def test_libraries_that_talk_much_are_heard_when_something_is_wrong(lines: list[dict[str, Any]]) -> None:
    heard = [line["logger"] for line in lines if line["event"] == "no chatter"]

    assert heard == ["py4j", "httpx", "httpx2", "great_expectations"]
    assert not [line for line in lines if line["event"] in ("chatter", "too fine")]


def test_a_line_stays_one_line_and_nothing_goes_to_stdout(
    process: subprocess.CompletedProcess[str], lines: list[dict[str, Any]]
) -> None:
    assert lines[-1]["event"] == "two\nlines, and ä"
    assert process.stdout == ""
