"""Tries one definition over a sample, again and again: what it shows now, before, and as it is live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from twinlake.base.errors import TwinlakeError
from twinlake.kinds.dependencies import upstream_topics
from twinlake.kinds.kind import Kind
from twinlake.unit_tests.changes import differing
from twinlake.unit_tests.given import Given, World, given, question
from twinlake.unit_tests.running import Raised, Second
from twinlake.unit_tests.sample import Sample
from twinlake.witness.refused import Refused
from twinlake.witness.rows import Found

SAME = "nothing differs"


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What a definition makes of the sample."""

    verdicts: Mapping[str, int]
    found: Found | None = None
    refused: str = ""
    """Why the witness does not evaluate it: Spark has to."""
    since: tuple[str, ...] = ()
    """What differs from the last time; nothing where there was none."""


class Developing:
    """Of one table; it keeps what the last try has shown."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._last: Found | None = None

    def tried(self, world: World, sample: Sample, spark: Callable[[], Second] | None = None) -> Tried:
        """By the witness; by Spark where that refuses, and `spark` is given. TwinlakeError for a sample that
        does not fit its topics, or for what Spark raises."""
        with TemporaryDirectory(dir=world.engine.folder) as folder:
            made = given(world, sample.case, Path(folder))
            verdicts = Counter(one.verdict for listed in made.records.values() for one in listed)
            tried = Tried(verdicts=verdicts)
            try:
                found = _shown(world, self._table, made, folder)
            except Refused as error:
                if spark is None:
                    return replace(tried, refused=error.words)
                found = _by_spark(spark(), world, sample, made)
        since = () if self._last is None else tuple(differing(self._last, found)) or (SAME,)
        self._last = found
        return replace(tried, found=found, since=since)

    def against(self, world: World, sample: Sample, live: Mapping[str, Kind], found: Found) -> list[str]:
        """What differs from what the live definitions make of the same records; nothing where they show the
        same. Refused where the witness does not evaluate them, TwinlakeError where they read other topics."""
        topics = upstream_topics(live[self._table], live)
        if others := sorted(set(topics) - world.topics.keys()):
            why = "the definition reads them no more, so that the sample has none of their records"
            raise TwinlakeError(f"the live version reads {', '.join(others)}", why, "see `twinlake diff`")
        case = replace(
            sample.case, records={name: sample.case.records.get(name, []) for name in topics}
        )  # fmt: skip
        there = World(live, world.topics, world.engine)
        with TemporaryDirectory(dir=world.engine.folder) as folder:
            made = given(there, case, Path(folder))
            return differing(_shown(there, self._table, made, folder), found)


def _shown(world: World, table: str, made: Given, folder: str) -> Found:
    return world.engine.found(question(world, table, made, Path(folder)))


def _by_spark(second: Second, world: World, sample: Sample, made: Given) -> Found:
    try:
        return second.shown(world, sample.case, made, full=False)[0].rows
    except Raised as error:
        what, remedy = "Spark raises over the sample", "repair the expression, or leave such records out"
        raise TwinlakeError(what, str(error), remedy) from error
