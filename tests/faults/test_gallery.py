"""Every example on real services: released, fed by the broker, certified, equal to its oracle."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.faults.twinlake import Twinlake
from tests.gallery.check import check
from tests.project import EXAMPLES, SOURCES
from twinlake.base.waiting import wait_for
from twinlake.server.client import LakeClient

RECORDS = 2_000
CAUGHT_UP_S = 300.0
WHOLLY = re.compile(r"speed = batch = DuckDB [0-9.]+ \([0-9,]+ rows(, [^;]* within (its|their) bound)?\)")
"""No expression is left to Spark."""


@pytest.fixture(scope="module")
def twinlake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twinlake]:
    """With every example added before the start, so that the first release has its tables. Releases need the
    other engine."""
    environ = pytest.MonkeyPatch()
    environ.setenv("TWINLAKE_PROOF_WITNESS", "required")
    made = Twinlake(tmp_path_factory.mktemp("gallery") / "home")
    for example in EXAMPLES:
        made("gallery", "add", example)
    try:
        made("up", "--without", "airflow")
        for example in EXAMPLES:
            made("gallery", "produce", example, "--count", str(RECORDS))
        client = LakeClient.of(made.settings.services())
        wait_for("every topic of the gallery", lambda: _caught_up(client) or None, CAUGHT_UP_S)
        yield made
    finally:
        made("down")
        environ.undo()


def _caught_up(client: LakeClient) -> bool:
    told = client.status()
    records = {one["name"]: one["records"] for one in told["topics"]}
    arrived = all(records.get(topic) == RECORDS for topics in SOURCES.values() for topic in topics)
    lags = (one["lag_records"] for one in (*told["topics"], *told["versions"]))
    return arrived and not any(lags)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_shows_what_its_oracle_says(twinlake: Twinlake, example: str) -> None:
    assert check(example, twinlake.settings) == 0


@pytest.mark.parametrize("example", EXAMPLES)
def test_speed_and_batch_agree_on_every_table_of_an_example(twinlake: Twinlake, example: str) -> None:
    for table in EXAMPLES[example]:
        twinlake("verify", table.name)


@pytest.mark.parametrize("example", EXAMPLES)
def test_another_engine_finds_the_rows_of_every_table_of_an_example(twinlake: Twinlake, example: str) -> None:
    client = LakeClient.of(twinlake.settings.services())
    tables = [table.name for table in EXAMPLES[example]]
    for table in tables:
        twinlake("verify", table)  # of what came after the release

    proofs = {one["table"]: one["proof"] for one in client.status()["certificates"]}

    unlike = {name: proofs[name] for name in tables if not WHOLLY.fullmatch(proofs[name])}
    assert unlike == {}
