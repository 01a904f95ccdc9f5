"""Judges changed definitions over records in files, against those of a commit; no service and no JVM runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from twinlake.base.as_json import to_json
from twinlake.base.errors import TwinlakeError
from twinlake.base.files import shown_path
from twinlake.base.times import format_moment
from twinlake.cli.judged import Judged, Wanted
from twinlake.config.settings import Settings
from twinlake.definitions.git_ref import commit_of_ref, project_at
from twinlake.definitions.load_in_subprocess import written
from twinlake.definitions.loader import Loaded, load
from twinlake.kinds.dependencies import upstream_tables
from twinlake.kinds.kind import Kind
from twinlake.releases.compare_found import compare_found
from twinlake.releases.plan import differences
from twinlake.releases.sampled import CHANGED, Against, SampledChange, SampledTopic, Taken
from twinlake.topics.topic import Topic, topic_names
from twinlake.unit_tests.over_files import BEFORE, NOW, Defined, OverFiles
from twinlake.unit_tests.project_tests import why_not
from twinlake.unit_tests.records import Record
from twinlake.unit_tests.sample_files import files_of, records_in
from twinlake.witness.refused import Refused
from twinlake.witness.rows import Evaluator

SAME = "the definition, what it reads and its topics' contracts and schemas are the same"
_SHORT = 12
_EARLIER = "as it was before: "


def judged(settings: Settings, wanted: Wanted, given: Sequence[str], ref: str | None) -> Judged:
    """What the working tree's definitions show otherwise than those of the commit that `ref` names."""
    after = Defined.of(load(*settings.sources), settings.sources)
    wanted.refuse_wrong(after.tables, after.wrong)
    commit = commit_of_ref(settings.project.root, ref)
    with _defined_at(settings, commit) as before:
        known = dict.fromkeys((*before.tables, *after.tables))
        wanted.refuse_unknown(known)
        tables = wanted.met(known)
        both = [one for one in tables if one in before.tables and one in after.tables]
        with _Trial.opened(before, after, given) as trial:
            tried = {name: trial.tried(name, commit) for name in both}
    broken = {
        name: f"{_EARLIER}{error.what}"
        for name in tables if name not in before.tables and (error := why_not(name, before.wrong))
    }  # fmt: skip
    return Judged(
        against=f"commit {commit[:_SHORT]}",
        compared=wanted.shown(one.to_json() for one in tried.values() if isinstance(one, SampledChange)),
        refused={**{name: one for name, one in tried.items() if isinstance(one, str)}, **broken},
        new=[one for one in tables if one not in before.tables and one not in broken],
        removed=[one for one in tables if one not in after.tables],
    )


@contextmanager
def _defined_at(settings: Settings, commit: str) -> Iterator[Defined]:
    """The definitions of the commit; none where the project was not there yet."""
    with project_at(settings.project, commit) as there:
        if there is None:
            yield Defined.of(Loaded(tables=()), ())
            return
        examples = tuple(one for one in settings.examples if one in there.example_names())
        sources = there.with_examples(examples)
        yield Defined.of(written(*sources).loaded(), sources)


@dataclass(frozen=True)
class _Trial:
    """Both sides over the records of these files, by topic."""

    over: OverFiles
    files: Mapping[str, str]

    @classmethod
    @contextmanager
    def opened(cls, before: Defined, after: Defined, given: Sequence[str]) -> Iterator[_Trial]:
        inputs = {topic for one in (before, after) for table in one.tables.values() for topic in table.inputs}
        files = files_of(given, sorted({*topic_names(*before.sources, *after.sources), *inputs}))
        records = {topic: records_in(file) for topic, file in files.items()}
        engine = Evaluator()
        try:
            over = OverFiles((before, after), records, engine)
            yield cls(over, {topic: shown_path(file) for topic, file in files.items()})
        finally:
            engine.close()

    def tried(self, table: str, commit: str) -> SampledChange | str:
        """What changes, or why that is not known."""
        began = time.perf_counter()
        old, new = self.over.sides
        against = Against(version=commit[:_SHORT], release=None)
        new.topics_of(table)
        try:
            is_same = old.meaning(table) == new.meaning(table)
        except TwinlakeError as error:
            return f"{_EARLIER}{error.what}"
        if is_same:
            return SampledChange(table=table, against=against, changed=False, why=(SAME,), seconds=0.0)
        why = _differences(old, new, table)
        side = ""
        try:
            found = self.over.shown(NOW, table)
            side = _EARLIER
            earlier = self.over.shown(BEFORE, table)
        except Refused as error:
            return f"{side}{error.words}"
        except TwinlakeError as error:
            if not side:
                raise
            return f"{side}{error.what}"
        seen = self.over.seen(NOW, table)
        compared = compare_found(
            (commit[:_SHORT], old.tables[table], earlier), (CHANGED, new.tables[table], found),
            {name: len(records) for name, records in seen.items()},
        )  # fmt: skip
        return SampledChange(
            table=table, against=against, changed=True, why=why, sample=_taken(seen),
            limits=tuple(self._limits(table)), comparison=compared,
            seconds=round(time.perf_counter() - began, 3),
        )  # fmt: skip

    def _limits(self, table: str) -> Iterator[str]:
        topics = self.over.sides[NOW].topics_of(table)
        named = ", ".join(self.files[name] for name in topics if name in self.files)
        yield (
            f"It is what the records of {named} show: how many rows of a lake change is not known."
            if named
            else "It has no records at all: name files of them."
        )
        if lacking := [name for name in topics if name not in self.files]:
            yield f"There are no records of {', '.join(lacking)}: what those would add is not seen."
        both = [dict(self.over.verdicts(side, table)) for side in (BEFORE, NOW)]
        for counted in both[1:] if both[0] == both[1] else ():
            if others := {name: many for name, many in counted.items() if name != "valid"}:
                yield f"Not all of them are valid by their contracts: {_counted(others)}."
        if both[0] != both[1]:
            earlier, now = map(_counted, both)
            yield f"The contracts give them other verdicts: {earlier} before, {now} now."
        definitions = (one.tables[name] for one in self.over.sides for name in _upstream(one, table))
        yield from dict.fromkeys(one.in_part for one in definitions if one.in_part)


def _taken(seen: Mapping[str, Sequence[Record]]) -> Taken:
    topics = {}
    for name, records in seen.items():
        times = [one.timestamp for one in records]
        topics[name] = SampledTopic(
            first_batch=min(1, len(records)), last_batch=len(records), records=len(records),
            begin=format_moment(min(times)) if times else None,
            end=format_moment(max(times)) if times else None,
        )  # fmt: skip
    many = sum(map(len, seen.values()))
    return Taken(by="files", records=many, of_records=many, topics=topics)


def _counted(verdicts: Mapping[str, int]) -> str:
    return ", ".join(f"{many:,} {name}" for name, many in verdicts.items()) or "none"


def _differences(old: Defined, new: Defined, table: str) -> tuple[str, ...]:
    """A line for each part of the definition, of what it reads and of its topics that differs."""
    def of(kind: Kind, at: str) -> tuple[str, ...]:
        before = old.tables.get(kind.name)
        return () if before is None else differences(before.to_json(), kind.to_json(), at)

    lines = [
        line for name in _upstream(new, table)
        for line in of(new.tables[name], "" if name == table else f"table {name}")
    ]  # fmt: skip
    earlier = old.topics_of(table)
    for name, topic in new.topics_of(table).items():
        if name in earlier:
            lines += differences(_of_topic(earlier[name]), _of_topic(topic), f"topic {name}")
    return tuple(lines)


def _upstream(defined: Defined, table: str) -> tuple[str, ...]:
    """The table, and those that it is made of."""
    return (table, *upstream_tables(defined.tables[table], defined.tables))


def _of_topic(topic: Topic) -> dict[str, Any]:
    """What decides what its records mean, by names: a list would differ at every place after a new one."""
    contract = topic.contract
    rules = {f"{rule.column} {rule.code}": rule.value for rule in contract.rules}
    required = {column.name: True for column in contract.columns if column.required}
    named = {"columns": dict(topic.columns), "rules": to_json(rules), "required": required}
    return {**contract.meaning(), **named}
