"""The kind of job that makes a project's files of topics active, while everything goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from twinlake.base.errors import ContractError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.job import Run
from twinlake.base.waiting import holding, wait_for
from twinlake.lake.catalog import described
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.stranded import load_all, orphaned, stranded
from twinlake.server.contract_facts import classification
from twinlake.server.job_kind import JobKind
from twinlake.server.job_models import ReloadParams
from twinlake.topics.kafka import Kafka
from twinlake.topics.registering import refuse_unregistrable, register
from twinlake.topics.registry import Registry
from twinlake.topics.topic import Topic

TURN_S = 600.0
KNOWN_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Reloaded:
    """By name, what became of the topics; with `applied` False what would become of them. `classified` are
    the columns whose classification is another now, each with it, which changes who sees what."""

    added: tuple[str, ...]
    edited: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    applied: bool
    classified: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {name: list(one) if isinstance(one, tuple) else one for name, one in asdict(self).items()}


def do_reload(lake: OpenLake, params: ReloadParams, run: Run) -> Reloaded:
    with holding(lake.ingest_lock, "another change of an ingest to end", TURN_S, run):
        run.say("reading the files of topics")
        topics, found = _refused_or_found(lake, params.check)
        if not params.check:
            _apply(lake, topics, found, run)
            found = replace(found, classified=tuple(_classified(lake)))
    return found


def _classified(lake: OpenLake) -> Iterator[str]:
    """What readers get of contracts is published once the job has ended."""
    before = described.classified(lake.path)
    for view, columns in sorted(classification(lake).items()):
        for column, now in columns.items():
            was = before.get(view, {}).get(column)
            if was is not None and sorted(was) != sorted(now):
                yield f"{view}.{column} is classified {', '.join(now) or 'as nothing'}"


def _refused_or_found(lake: OpenLake, check: bool) -> tuple[dict[str, Topic], Reloaded]:
    """What is in the files, and what is new in it; UsageError with all that is wrong."""
    loaded = load_all(lake.settings.sources, lake.path)
    old, new = lake.topics.active(), loaded.topics
    known = {*old, *lake.topics.broken()}
    added = tuple(sorted(new.keys() - old.keys()))
    edited = tuple(name for name in sorted(new) if name in old and new[name].to_json() != old[name].to_json())
    removed = tuple(sorted(known - new.keys() - loaded.refused.keys()))
    wrong: list[TwinlakeError] = [*loaded.refused.values()]
    wrong += [one.refused for one in stranded(lake.path, new, lambda: lake.spark)]
    wrong += [one.refused for one in orphaned(lake.path, removed)]
    wrong += _taken(lake, added)
    registry = Registry(lake.settings.services().registry())
    for name in (*added, *edited):
        try:
            refuse_unregistrable(registry, new[name])
            if not check and name in added:
                _refuse_unmakeable(lake, name)
        except UnreachableError:
            raise  # whoever asks again later may get more
        except TwinlakeError as error:
            wrong.append(error)
    if wrong:
        raise _refused(wrong)
    unchanged = tuple(sorted(old.keys() - set(edited) - set(removed)))
    return new, Reloaded(
        added=added, edited=edited, removed=removed, unchanged=unchanged, applied=not check
    )  # fmt: skip


def _apply(lake: OpenLake, topics: dict[str, Topic], found: Reloaded, run: Run) -> None:
    """Whatever fails here leaves that topic and those after it as they were; to reload again goes on."""
    registry, kafka = Registry(lake.settings.services().registry()), _kafka(lake)
    changed = (*found.added, *found.edited)
    for name in changed:
        register(registry, topics[name])
    for name in found.added:
        _make(kafka, name)
    for number, name in enumerate(changed):
        run.progress(number, len(changed), "topics", f"opening {name}", span=1)
        lake.topics.put(topics[name])
    for name in found.removed:
        lake.topics.drop(name)


def _make(kafka: Kafka, name: str) -> None:
    """Returns once the broker knows the topic: ingest stops for one that is not there."""
    if kafka.topic(name) is None:
        kafka.create(name)

    def is_known() -> bool | None:
        with suppress(UnreachableError):  # a partition is known before its leader knows of it
            topic = kafka.topic(name)
            return True if topic and topic.partitions and kafka.ends(name, topic.partitions) else None
        return None

    wait_for(f"Kafka to know topic {name}", is_known, KNOWN_S)


def _refuse_unmakeable(lake: OpenLake, name: str) -> None:
    kafka = _kafka(lake)
    if kafka.topic(name) is None:  # a topic that this user may not see is none, too
        kafka.try_to_create(name)


def _taken(lake: OpenLake, added: tuple[str, ...]) -> Iterator[TwinlakeError]:
    for one in lake.changelogs.status():
        for topic in sorted(set(one["topics"]) & set(added)):
            yield UsageError(
                f"topic {topic!r} is taken", f"the changelog of {one['table']} is sent to it",
                "give the topic another name",
            )  # fmt: skip


def _refused(wrong: list[TwinlakeError]) -> UsageError:
    said = []
    for error in wrong:
        why = "" if isinstance(error, ContractError) or not error.why else f": {error.why}"
        said.append(f"{error.what}{why}" + (f" ({error.remedy})" if error.remedy else ""))
    return UsageError(
        "nothing was reloaded, the topics are as they were", "\n".join(said),
        "put this right, ask `twinlake check`, then `twinlake reload` again",
    )  # fmt: skip


def _kafka(lake: OpenLake) -> Kafka:
    return Kafka(lake.settings.services().kafka("ingest"))


KINDS = {"reload": JobKind(params=ReloadParams, handler=do_reload, urgent=True)}
