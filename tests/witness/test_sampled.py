"""The witness of ingest says why it has no answer: a file that a clean-up has deleted is no crash."""

from __future__ import annotations

from pathlib import Path

from twinlake.witness.answer import GONE, NOT_WITNESSED
from twinlake.witness.ingest.evaluate import sampled
from twinlake.witness.ingest.question import Era, TopicQuestion
from twinlake.witness.question import Limits

LIMITS = Limits(memory_mb=512, seconds=60)


def test_a_file_that_is_gone_is_no_crash_and_no_difference(tmp_path: Path) -> None:
    question = TopicQuestion(
        topic="orders", eras=(Era(after=0, contract={"format": "json"}, fields=()),), schemas={},
        files=(str(tmp_path / "gone.parquet"),), position=1, event={}, met={}, seed=7, size=10,
    )  # fmt: skip

    found = sampled(question, LIMITS)

    assert (found.verdict, found.why, found.is_gone) == (NOT_WITNESSED, GONE, True)
    assert found.words == f"ingest is not witnessed because {GONE}"
