"""Answers a question about a topic in this process: draws, decides, looks for earlier records, compares."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import duckdb
import fastavro

from twinlake.witness.answer import DIFFERS, EQUAL, FAILED, GONE, MOST, NOT_WITNESSED
from twinlake.witness.database import is_gone, opened
from twinlake.witness.ingest import change_data
from twinlake.witness.ingest.contract import length
from twinlake.witness.ingest.judge import UNKNOWN_SCHEMA, Judge, duplicate
from twinlake.witness.ingest.kept import is_same, place_of, projected, widened
from twinlake.witness.ingest.log import Asked, Log, Row, text_of
from twinlake.witness.ingest.question import Era, RecordDifference, TopicAnswer, TopicQuestion
from twinlake.witness.ingest.record import VALID, Judged, Rules, Value
from twinlake.witness.question import Limits
from twinlake.witness.refused import Refused, one_line
from twinlake.witness.types import Type

AVRO_ENGINE = f"fastavro {fastavro.__version__}"
JSON_ENGINE = "json"
_ENGINES = {"avro": AVRO_ENGINE, "protobuf": "protobuf"}
_SHOWN = 300


def sampled(question: TopicQuestion, limits: Limits) -> TopicAnswer:
    """The answer; a question that the witness has no answer to says why."""
    began = time.process_time()
    written = question.eras[-1].contract.get("format", "avro") if question.eras else "avro"
    try:
        answer = _answer(question, limits)
    except Refused as error:
        answer = _without(question, error.words)
    except (duckdb.OutOfMemoryException, MemoryError):
        answer = _without(question, f"it needs more than {limits.memory_mb} MB")
    except duckdb.Error as error:
        if is_gone(error, question):
            answer = _without(question, GONE)
        else:
            answer = TopicAnswer(topic=question.topic, verdict=FAILED, why=one_line(error))
    return replace(
        answer, seed=question.seed, engine=_ENGINES.get(written, JSON_ENGINE),
        cpu_s=round(time.process_time() - began, 3),
    )  # fmt: skip


def _without(question: TopicQuestion, why: str) -> TopicAnswer:
    return TopicAnswer(topic=question.topic, verdict=NOT_WITNESSED, why=why)


def _answer(question: TopicQuestion, limits: Limits) -> TopicAnswer:
    if not question.eras:
        return _without(question, "nobody knows by which contract its records were validated")
    with opened(question, limits) as database:
        files = database.files(question.files)
        if files is None:
            return TopicAnswer(topic=question.topic, verdict=EQUAL)
        log, after = Log(database, question, files), question.eras[0].after
        records, before = log.counts(after)
        rows = log.sample(after)
        found = _Sample(question, log, rows).compared()
    said = replace(found, sampled=len(rows), records=records, before=before)
    if said.verdict == EQUAL and 2 * said.compared < len(rows):
        left = f"it says nothing of {len(rows) - said.compared:,} of {len(rows):,} records drawn"
        return replace(said, verdict=NOT_WITNESSED, why=f"{left}: {', '.join(said.unsure)}")
    if before and not rows:
        return replace(
            said, verdict=NOT_WITNESSED,
            why=f"its {before:,} records were validated before it was kept by which contract",
        )  # fmt: skip
    return said


class _Sample:
    """The rows drawn, and what the witness makes of them."""

    def __init__(self, question: TopicQuestion, log: Log, rows: list[Row]) -> None:
        self._question, self._log, self._rows = question, log, rows
        schemas = {int(number): avro for number, avro in question.schemas.items()}
        self._rules = [
            Rules(contract=era.contract, fields=era.fields, schemas=schemas) for era in question.eras
        ]
        self._judges = [Judge(rules) for rules in self._rules]
        self._starts = [era.after for era in question.eras]

    def compared(self) -> TopicAnswer:
        unsure: Counter[str] = Counter()
        differences = []
        for row, judged in zip(self._rows, self._judged(), strict=True):
            if why := judged.unsure or self._doubt(row, judged):
                unsure[why] += 1
            elif found := self._difference(row, judged):
                differences.append(found)
        return TopicAnswer(
            topic=self._question.topic, verdict=DIFFERS if differences else EQUAL,
            compared=len(self._rows) - unsure.total(), differing=len(differences),
            differences=tuple(differences[:MOST]), unsure=dict(unsure),
        )  # fmt: skip

    def _era(self, row: Row) -> int:
        return bisect_left(self._starts, row.batch) - 1

    def _judged(self) -> list[Judged]:
        found = [self._judges[self._era(row)].alone(row.raw) for row in self._rows]
        for number, era in enumerate(self._question.eras):
            window = length(era.contract, "unique_within")
            asked = {
                at: (row, judged) for at, (row, judged) in enumerate(zip(self._rows, found, strict=True))
                if self._era(row) == number and not judged.unsure and judged.verdict == VALID
                and judged.identity is not None
            }  # fmt: skip
            if asked and window is not None:
                for at in self._repeated(asked, number, era, window):
                    found[at] = duplicate(found[at])
        return found

    def _repeated(
        self, asked: Mapping[int, tuple[Row, Judged]], number: int, era: Era, window: int
    ) -> Iterator[int]:
        database = era.contract.get("change_data")
        if not database:
            texts = [Asked(at, row, text_of(judged.identity)) for at, (row, judged) in asked.items()]
            yield from self._log.repeated(texts, era, window)
            return
        places = [
            Asked(at, row, self._log.place_of(judged.fields or {}, era))
            for at, (row, judged) in asked.items()
        ]
        seen = set()
        for at, raw in self._log.earlier(places, era, window):
            fields = self._judges[number].alone(raw).fields
            if at not in seen and fields is not None:
                if change_data.identity(database, fields, raw.key) == asked[at][1].identity:
                    seen.add(at)
                    yield at

    def _doubt(self, row: Row, judged: Judged) -> str:
        """Why the two may differ although ingest was right: what was known then is not known now."""
        met = {int(number) for number in self._question.met}
        if judged.reasons == (UNKNOWN_SCHEMA,) and judged.schema_id in met:
            return f"the registry has no schema {judged.schema_id} any more"
        if row.reasons == (UNKNOWN_SCHEMA,) and judged.reasons != row.reasons:
            if row.schema_id is None or not self._log.was_known(row.schema_id, row.batch):
                return "its schema may have been registered after it"
        code, _, name = (row.reasons or ("",))[0].partition(":")
        fields = {one.name for one in self._rules[self._era(row)].fields}
        if code == "unreadable_by_schema" and judged.reasons != row.reasons and name not in fields:
            return "its schema had no place in the log"
        return ""

    def _difference(self, row: Row, judged: Judged) -> RecordDifference | None:
        sides: list[tuple[str, str, str]] = []
        witness, log = _said(judged), _said(row)
        if witness != log:
            sides.append(("verdict", witness, log))
        if (judged.event is None) != (row.event is None):
            sides.append(("event", *(("none", "there") if judged.event is None else ("there", "none"))))
        for name, mine, theirs in self._pairs(row, judged):
            if not is_same(mine, theirs):
                sides.append((f"event.{name}", _shown(mine), _shown(theirs)))
        if not sides:
            return None
        raw = row.raw
        return RecordDifference(
            record=f"{raw.epoch}/{raw.partition}/{raw.offset}",
            witness={name: mine for name, mine, _ in sides}, log={name: theirs for name, _, theirs in sides},
        )  # fmt: skip

    def _pairs(self, row: Row, judged: Judged) -> Iterator[tuple[str, Value, Value]]:
        """The fields of the log's `event` that the witness knows of this record: its value, the log's."""
        if judged.event is None or row.event is None:
            return
        rules, kept = self._rules[self._era(row)], self._log.kept
        if rules.is_json:
            promised = {one.name: Type.parse(one.type) for one in rules.fields}
            places = {place_of(name, type_, kept): name for name, type_ in promised.items()}
            for place, theirs in row.event.items():
                own = place.split(":")[0]
                if place in places:  # of what is inside, and is not promised any more, nothing is said
                    yield place, judged.event[places[place]], projected(theirs, promised[own])
                elif own in promised:
                    yield place, None, theirs
            return
        names = {place.split(":")[0]: place for place in self._question.met.get(str(judged.schema_id), ())}
        sent = {names[name]: value for name, value in judged.event.items() if name in names}
        for place, theirs in row.event.items():
            if place in sent:
                yield place, widened(sent[place], kept[place]), theirs
            elif place not in names.values():
                yield place, None, theirs


def _said(found: Judged | Row) -> str:
    late = " (late)" if found.late and found.verdict == VALID else ""
    return f"{found.verdict}{late} {', '.join(sorted(found.reasons))}".strip()


def _shown(value: Value) -> str:
    return repr(value)[:_SHOWN]
