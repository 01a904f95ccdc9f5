"""Sample limits: what a sample cannot say of a changed definition, as sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from twinlake.base.times import format_moment, from_micros
from twinlake.kinds.kind import Kind
from twinlake.releases.sampled import Taken


def limits(definitions: Iterable[Kind], taken: Taken, starts: Mapping[str, int]) -> tuple[str, ...]:
    """Those that apply, each once. `definitions` are both versions' and those of what they read; `starts`
    has, by topic, up to which time in microseconds retention has deleted records."""
    found = [*_of_sample(taken)]
    if taken.by == "records" and not taken.whole:
        found += _of_topics(taken)
        found += (one.in_part for one in definitions if one.in_part)
    if taken.by == "keys" or taken.whole:
        found += (
            f"Retention has deleted the records of topic {topic} up to {format_moment(from_micros(until))}: "
            "neither version counts them here, and the live one still shows what it has made of them."
            for topic, until in starts.items()
        )
    return tuple(dict.fromkeys(found))


def _of_sample(taken: Taken) -> Iterator[str]:
    if taken.by == "keys":
        yield f"Only rows of {taken.keys:,} keys were compared, drawn among those of the newest records."
    elif not taken.whole:
        yield (
            f"Counts and totals are of {taken.records:,} of {taken.of_records:,} records, and no estimate "
            "for all of history."
        )


def _of_topics(taken: Taken) -> Iterator[str]:
    """Each topic has its own newest records, so that a slow one reaches back further."""
    begins = {name: one.begin for name, one in taken.topics.items() if one.begin}
    if len(set(begins.values())) > 1:
        listed = ", ".join(f"{name} at {begin}" for name, begin in begins.items())
        yield f"The sampled records of the topics begin at different times: {listed}."
