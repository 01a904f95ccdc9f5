"""The JVM alone dies, Python alone dies: of the lake server and the SQL server, under the real supervisor."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psutil
import pytest

from tests.faults.twinlake import Twinlake
from tests.processes import has_ended
from twinlake.base.waiting import wait_for
from twinlake.server import lock
from twinlake.services.supervise import record
from twinlake.spark.jvm import EXIT_CODE

PARTS = ("lake", "sql")


@pytest.fixture(scope="module")
def twinlake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twinlake]:
    command = Twinlake(tmp_path_factory.mktemp("twinlake"))
    try:
        command("up", "--only", ",".join(PARTS))
        yield command
    finally:
        command("down")


def gone(process: psutil.Process) -> bool | None:
    return has_ended(process) or None


def test_a_part_whose_jvm_alone_is_killed_exits_and_is_started_again(twinlake: Twinlake) -> None:
    before = {part: record.load(twinlake.folders, part).restarts for part in PARTS}
    alone = [twinlake.python(part) for part in PARTS]

    for part in PARTS:
        twinlake.jvm(part).kill()

    for process in alone:
        wait_for("Python to exit", lambda process=process: gone(process), 10)
    for part in PARTS:
        wait_for(f"{part} again", lambda part=part: twinlake.ready_again(part, before[part] + 1), 180)
        said = twinlake.folders.log(part).read_text().splitlines()
        told = [json.loads(line) for line in said if '"logger": "twinlake.spark.jvm"' in line]
        assert [(one["level"], one["why"], one["exit_code"]) for one in told] == [
            ("critical", "killed by signal 9", EXIT_CODE)
        ]


def test_no_jvm_survives_its_python_not_even_a_frozen_one_and_the_lake_is_free(twinlake: Twinlake) -> None:
    """With the supervisor killed before, which would end what is left of a part before it starts it again."""
    twinlake.python("supervisor").kill()
    alone, orphans = [twinlake.python(part) for part in PARTS], [twinlake.jvm(part) for part in PARTS]
    for jvm in orphans:
        jvm.suspend()

    for process in alone:
        process.kill()

    for process in alone + orphans:
        wait_for("Python and its JVM to end", lambda process=process: gone(process), 10)
    lock.take(twinlake.settings.lake).close()
    twinlake("up", "--only", ",".join(PARTS))
