"""Asks the witness of ingest about a stage's log, in this process."""

from __future__ import annotations

from tests.ingest.stage import Stage
from twinlake.batch.witnessing_topics import question
from twinlake.lake.log.log import Log
from twinlake.topics.contract import JSON
from twinlake.topics.registry import Registry
from twinlake.witness.ingest.evaluate import sampled
from twinlake.witness.ingest.question import TopicAnswer
from twinlake.witness.question import Limits

LIMITS = Limits(memory_mb=1_024, seconds=120)


def answered(stage: Stage, log: Log, seed: int = 7) -> TopicAnswer:
    """What it finds of all records that the log has."""
    schemas = {}
    if log.topic.contract.format != JSON:
        registry = Registry(stage.registry.url)
        schemas = registry.schemas(stage.subject)
        for number in map(int, log.met()):
            schemas.setdefault(number, registry.schema(number) or {})
    return sampled(question(log, schemas, log.end(), seed), LIMITS)


def differing(answer: TopicAnswer) -> dict[str, set[str]]:
    """By record, what of it differs."""
    return {one.record: set(one.log) for one in answer.differences}
