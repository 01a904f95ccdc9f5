"""A real lake with something of everything: the witness finds what each of its versions shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import project_in
from tests.small_lake.small import unpack
from tests.witness.asking import differing
from twinlake.batch.witnessing import question
from twinlake.lake import formats
from twinlake.lake.catalog.maintained_version import MaintainedVersion, Opened, open_version
from twinlake.lake.catalog.version import Pin, Version, stored_versions
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.speed.advance import standing
from twinlake.topics.topic import load_topic, topic_names
from twinlake.witness.answer import EQUAL, NOT_WITNESSED, Answer
from twinlake.witness.evaluate import evaluate
from twinlake.witness.question import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.services, pytest.mark.faults]
OLDEST = 0
LIMITS = Limits(memory_mb=1_024, seconds=120)


def pinned(opened: Opened, pins: Mapping[str, Pin]) -> Pin:
    """Where the version is: its own step, or the logs' ends and the pins of what it reads."""
    version = opened.version
    if isinstance(opened, MaintainedVersion):
        at = standing(opened)
        return Pin(
            version=version, position={opened.topic: at.position}, watermarks={opened.topic: at.watermark},
            clocks={opened.topic: dict(at.clocks)}, delta_version=delta.newest_version(opened.path),
        )  # fmt: skip
    ends = {name: log.metadata() for name, log in opened.logs.items()}
    return Pin(
        version=version,
        position={name: end["batch"] for name, end in ends.items()},
        watermarks={name: end["watermark"] for name, end in ends.items()},
        clocks={name: end.get("clocks", {}) for name, end in ends.items()},
        reads={name: pins[name] for name in opened.reads},
    )


@pytest.fixture(scope="module")
def answers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """By table and version."""
    home = tmp_path_factory.mktemp("small")
    lake = unpack(OLDEST, home)
    formats.acquire(lake)
    project = project_in(home / "project")
    logs = {name: Log(spark, lake, load_topic(name, project)) for name in topic_names(project)}
    for log in logs.values():
        log.open()
    found: dict[str, Answer] = {}
    opened: dict[tuple[str, str], Opened] = {}
    pins: dict[tuple[str, str], Pin] = {}
    for version in in_order(stored_versions(lake)):
        reads: dict[str, Any] = {name: opened[name, of] for name, of in version.reads.items()}
        one = open_version(lake, version, logs, reads)
        key = version.table, version.name
        opened[key] = one
        pins[key] = pinned(one, {name: pins[name, of] for name, of in version.reads.items()})
        folder = home / "staging" / version.table / version.name
        found[str(version)] = evaluate(question(one, pins[key], folder), LIMITS)
    return found


def in_order(versions: Iterable[Version]) -> list[Version]:
    """Each after those that it reads."""
    done: list[Version] = []
    left = list(versions)
    while left:
        known = {(one.table, one.name) for one in done}
        ready = [one for one in left if set(one.reads.items()) <= known]
        done += ready
        left = [one for one in left if one not in ready]
    return done


def test_no_version_differs(answers: dict[str, Answer]) -> None:
    wrong = {
        name: differing(one) for name, one in answers.items() if one.verdict not in (EQUAL, NOT_WITNESSED)
    }

    assert wrong == {} and len(answers) > 10
    assert any(one.rows for one in answers.values())  # else nothing was compared


def test_versions_without_an_answer_say_why(answers: dict[str, Answer]) -> None:
    why = {name: one.why for name, one in answers.items() if one.verdict == NOT_WITNESSED}

    assert why == {}


def test_what_follows_the_clocks_is_equal_too(answers: dict[str, Answer]) -> None:
    finals = {name: one.final for name, one in answers.items() if one.final is not None}

    assert {name: one.verdict for name, one in finals.items()} == dict.fromkeys(finals, EQUAL)
    assert len(finals) > 4
