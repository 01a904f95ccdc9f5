"""Asks the witness of ingest about topics of the open lake; keeps its answers as their certificates."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from twinlake.base.errors import TwinlakeError
from twinlake.base.job import Run
from twinlake.base.times import format_moment
from twinlake.batch.witnessing import IN_A_STORE, LIMITS, one_at_a_time
from twinlake.lake.catalog.topic_certificates import TopicCertificate
from twinlake.lake.log import contracts
from twinlake.lake.log.log import Log
from twinlake.lake.log.log_clock import moment_sql
from twinlake.lake.open_lake import OpenLake
from twinlake.topics.contract import JSON
from twinlake.topics.registered import with_files
from twinlake.topics.registry import Registry
from twinlake.witness.answer import FAILED, LONGEST, NOT_WITNESSED
from twinlake.witness.child import Ended, ask
from twinlake.witness.ingest.contract import length
from twinlake.witness.ingest.question import Era, TopicAnswer, TopicQuestion
from twinlake.witness.refused import one_line

SAMPLE = 1_000
"""Records of a topic that are drawn, beside those of rare verdicts."""
_SEEDS = 1 << 31


def witness_topics(lake: OpenLake, topics: Iterable[str], run: Run) -> list[TopicCertificate]:
    """A certificate of each topic by its name, of where its log ends now; one that this job, or anybody at
    that position, has made is not made again, where the witness could be asked. It raises CancelledError
    alone."""
    return [_certificate(lake, topic, run) for topic in sorted(set(topics))]


def _certificate(lake: OpenLake, topic: str, run: Run) -> TopicCertificate:
    known, end = lake.certificates.topics.newest(topic), lake.logs[topic].end()
    if known and (known.job == run.id or (known.position == end and known.is_lasting)):
        return known
    run.progress(0, 1, "comparisons", f"having {topic} decoded and validated a second time", span=1)
    try:
        with one_at_a_time(run):
            answer = _answer(lake, topic, end, run)
            if answer.is_gone:
                run.say(f"a file that is read of {topic} is gone: asking again")
                answer = _answer(lake, topic, end, run)
    except Exception as error:
        run.check_cancelled()
        answer = TopicAnswer(topic=topic, verdict=FAILED, why=f"it was not asked: {one_line(error, LONGEST)}")
    run.check_cancelled()
    made = TopicCertificate(
        topic=topic, job=run.id, position=end, created_at=format_moment(lake.clock()), answer=answer
    )
    return lake.certificates.topics.add(made)


def _answer(lake: OpenLake, topic: str, end: int, run: Run) -> TopicAnswer:
    log = lake.logs[topic]
    if not isinstance(log.path, Path):
        return TopicAnswer(topic=topic, verdict=NOT_WITNESSED, why=IN_A_STORE)
    try:
        schemas = _schemas(lake, log)
    except TwinlakeError as error:
        return TopicAnswer(topic=topic, verdict=NOT_WITNESSED, why=one_line(error, LONGEST))
    asked = question(log, schemas, end, 1 + secrets.randbelow(_SEEDS))
    found = ask({"records": asked.to_json()}, LIMITS, TopicAnswer.from_json, is_stopped=run.cancelled.is_set)
    if isinstance(found, Ended):
        return TopicAnswer(topic=topic, verdict=found.verdict, why=found.why, seed=asked.seed)
    return found


def question(log: Log, schemas: dict[int, dict[str, Any]], end: int, seed: int) -> TopicQuestion:
    """All that the witness may know, of the log up to the batch `end`."""
    files = log.data_files()  # first: what is deleted from now on is read
    eras = contracts.eras(log.lake, log.topic.name)
    return TopicQuestion(
        topic=log.topic.name,
        eras=eras_since(eras, last_undecidable(log, eras)),
        schemas={str(number): with_files(said, log.topic.newest.message) for number, said in schemas.items()},
        files=files,
        position=end,
        event=log.event(),
        met={number: tuple(names) for number, names in log.met().items()},
        seed=seed,
        size=SAMPLE,
    )


def eras_since(eras: Sequence[Era], batch: int) -> tuple[Era, ...]:
    """Those of batches after this one, the first of them from there on."""
    begun = [index for index, era in enumerate(eras) if era.after <= batch]
    if not begun:
        return tuple(eras)
    return (replace(eras[begun[-1]], after=batch), *eras[begun[-1] + 1 :])


def last_undecidable(log: Log, eras: Sequence[Era]) -> int:
    """The last batch of which nobody can tell any more which of its records were duplicates: records that
    retention has deleted may be the first ones of their ids, for as long as the contract said of each era."""
    start = log.start
    if start is None:
        return 0
    reached = []
    for number, era in enumerate(eras):
        if (window := length(era.contract, "unique_within")) is not None:
            ends = f" AND batch <= {eras[number + 1].after}" if number + 1 < len(eras) else ""
            until = moment_sql(start.until + window)
            reached.append(f"batch > {era.after}{ends} AND timestamp <= {until}")
    if not reached:
        return start.batch
    found = log.all(start.batch, log.end()).where(" OR ".join(reached)).selectExpr("max(batch) AS last")
    return int(found.collect()[0]["last"] or start.batch)


def _schemas(lake: OpenLake, log: Log) -> dict[int, dict[str, Any]]:
    """What the registry has for the topic's records now, and for the ids that the log has met."""
    if log.topic.contract.format == JSON:
        return {}
    registry = Registry(lake.settings.services().registry())
    found = registry.schemas(f"{log.topic.name}-value")
    for number in {int(one) for one in log.met()} - found.keys():
        if (avro := registry.schema(number)) is not None:
            found[number] = avro
    return found
