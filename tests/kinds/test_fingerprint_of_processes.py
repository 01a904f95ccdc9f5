"""A fingerprint is the same in every process: a restart must not want to rebuild what nobody changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import PROJECT

HASHES = (0, 3, 5)
"""Ways in which a JVM may draw the identity hash of an object: at random, counted, by thread."""
CODE = """
import json, sys
from pathlib import Path
from twinlake.definitions.fingerprint import fingerprint
from twinlake.config.settings import Settings
from twinlake.spark.session import session
from twinlake.topics.topic import load_topic
from tests.project import OURS, TABLES

spark = session(Settings(home=Path(sys.argv[1])), memory="1g", cores=1)
topics = {name: load_topic(name, OURS) for table in TABLES for name in table.inputs}
print(json.dumps({table.name: fingerprint(table, topics, spark) for table in TABLES}))
spark.stop()
"""


def fingerprints(home: Path, hashes: int) -> dict[str, str]:
    options = f"-XX:+UnlockExperimentalVMOptions -XX:hashCode={hashes}"
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(home)], cwd=PROJECT, capture_output=True, text=True, check=True,
        env={**os.environ, "JAVA_TOOL_OPTIONS": options}, timeout=300,
    )  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.faults
def test_every_table_has_one_fingerprint_whatever_the_process_hashes(tmp_path: Path) -> None:
    found = [fingerprints(tmp_path / str(hashes), hashes) for hashes in HASHES]

    assert found[0] == found[1] == found[2]
