"""Stranded: which tables that are live, or can be gone back to, new files of topics would leave unreadable.

Asked before the files are active, by whoever makes them so. A version reads by the schema that it was made
with, so that most changes strand none; what is left is what no schema says, and what cannot be read at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from twinlake.base.errors import ContractError, DamagedError, StoppedTopicError, TwinlakeError
from twinlake.base.location import Location
from twinlake.config.project import Project
from twinlake.kinds.all import from_json
from twinlake.kinds.analysis import columns, problems
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.made_with import stored_schema, upstream
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version, stored_versions
from twinlake.lake.log import active_topics, topic_views
from twinlake.lake.log.log import Log
from twinlake.topics.contract_file import load_contract
from twinlake.topics.earlier import MadeWith, as_of_schema, made_with
from twinlake.topics.topic import Topic, contract_file, load_topic, topic_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

journal = structlog.get_logger(__name__)
Topics = Mapping[str, Topic]
_BACK = "put the file back as it was"


@dataclass(frozen=True, kw_only=True)
class Stranding:
    """A topic's new files, and what would go wrong with them."""

    topic: str
    file: str
    why: str
    steps: str

    @property
    def refused(self) -> ContractError:
        """For `twinlake check`."""
        return ContractError(self.file, "", self.why, self.steps)

    @property
    def stops(self) -> StoppedTopicError:
        """For a lake server that finds such files at its start."""
        what = f"the new files of topic {self.topic} are not made active: {self.file}"
        return StoppedTopicError(what, self.why, self.steps)


def stranded(lake: Location, topics: Topics, start_spark: Callable[[], SparkSession]) -> Iterator[Stranding]:
    """What these topics would strand in the lake, where they are not those that it works with; Spark is
    started only where some are not, and after all that can be said without it. Nothing is written."""
    old = dict(_active(lake))
    changed = [name for name in old if name in topics and _differ(old[name], topics[name])]
    found = list(_of_view_names(lake, topics))
    found += [one for name in changed for one in _of_edited_files(lake, old[name], topics[name])]
    yield from found
    changed = [name for name in changed if name not in {one.topic for one in found}]
    if not changed:
        return
    spark = start_spark()
    for name in list(changed):
        if why := Log(spark, lake, topics[name]).why_not_opened():
            steps = (
                f"{_BACK}, and give what has a new type a name of its own, in Avro with a default; release "
                "the tables that read it, then have producers send it"
            )
            yield Stranding(topic=name, file=_file(old[name], topics[name]), why=why, steps=steps)
            changed.remove(name)
    now = {**old, **{name: topics[name] for name in changed}}
    for version in _living(lake):
        for name in (name for name in version.topics if name in changed):
            if wrong := list(_wrong(lake, version, old, {**old, name: now[name]}, spark)):
                yield _of_version(lake, version, old[name], topics[name], wrong)


def orphaned(lake: Location, removed: Sequence[str]) -> list[Stranding]:
    """The topics without files that living versions read; those would stand still for ever."""
    found = []
    living = _living(lake) if removed else []
    for name in removed:
        if readers := "; ".join(_named(lake, one) for one in living if name in one.topics):
            steps = (
                f"{_BACK}, or release without those tables and retire the releases that have them first "
                "(`twinlake retire --keep 1`)"
            )
            why = f"the files of topic {name} are gone, and it is read by {readers}"
            found.append(Stranding(topic=name, file=f"contracts/{name}.yaml", why=why, steps=steps))
    return found


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The topics of a project's files, and why the files of others are not made active."""

    topics: dict[str, Topic]
    refused: dict[str, TwinlakeError]


def load_all(sources: Sequence[Project], lake: Location | None = None) -> Loaded:
    """The topics whose files are right. One that the lake works with is gone only once its contract is: in a
    torn file nothing says any more that it is a topic's."""
    topics, refused = dict[str, Topic](), dict[str, TwinlakeError]()
    names = topic_names(*sources)
    for name in names:
        try:
            topics[name] = load_topic(name, *sources)
        except TwinlakeError as error:
            refused[name] = error
    for name in set(active_topics.active_topic_names(lake) if lake else ()).difference(names):
        if why := _why_no_topic(contract_file(name, *sources)):
            refused[name] = why
    return Loaded(topics=topics, refused=refused)


def _why_no_topic(file: Path) -> ContractError | None:
    """None where there is no file, or one of a table."""
    try:
        is_topic = load_contract(file).is_topic
    except ContractError as error:
        return error if file.exists() else None
    if not is_topic:
        return None
    return ContractError(
        file, "", "it is the contract of a topic that has no schema file, and does not say `format: json`",
        "put back what is missing; or remove the contract, too, if the topic is to be read no more",
    )  # fmt: skip


def load_active(
    lake: Location, sources: Sequence[Project], start_spark: Callable[[], SparkSession]
) -> Loaded:
    """Those of them that a lake server can work with."""
    found = load_all(sources, lake)
    refused = found.refused | {one.topic: one.stops for one in stranded(lake, found.topics, start_spark)}
    for name, why in refused.items():
        journal.error("the topic's files are not made active", topic=name, why=str(why))
    topics = {name: topic for name, topic in found.topics.items() if name not in refused}
    return Loaded(topics=topics, refused=refused)


def _active(lake: Location) -> Iterator[tuple[str, Topic]]:
    """The topics that the lake works with; a file that is torn is written again from the new files."""
    for name in active_topics.active_topic_names(lake):
        with suppress(DamagedError):
            yield name, active_topics.active_topic(lake, name)


def _differ(old: Topic, new: Topic) -> bool:
    return old.contract.meaning() != new.contract.meaning() or _fingerprints(old) != _fingerprints(new)


def _fingerprints(topic: Topic) -> list[str]:
    return [schema.fingerprint for schema in topic.schemas]


def _file(old: Topic, new: Topic) -> str:
    """The file that says what is new."""
    return new.contract.file if _fingerprints(old) == _fingerprints(new) else new.newest.file


def _of_view_names(lake: Location, topics: Topics) -> Iterator[Stranding]:
    """New topics whose views nobody could read, because what is there has their names."""
    active = active_topics.active_topic_names(lake)
    stems = {topic_views.stem(name).lower(): name for name in active}
    new = sorted(topics.keys() - set(active))
    living = _living(lake) if new else []
    for name in new:
        file = topics[name].newest.file
        shown = ", ".join(topic_views.names(name))
        if (other := stems.setdefault(topic_views.stem(name).lower(), name)) != name:
            why = f"its views would be {shown}, which are those of topic {other}"
            steps = "give the topic a name that differs in more than signs and case"
            yield Stranding(topic=name, file=file, why=why, steps=steps)
        for version in living:
            if view := topic_views.hidden_by(version.table, name):
                why = f"its view would be {view}, the name of {_named(lake, version)}"
                steps = (
                    f"give the topic another name; or first release the rows of {version.table} as a table "
                    f"of another name (`twinlake plan`, `build`, `promote`), then retire the releases that "
                    f"have {version.table} (`twinlake retire --keep 1`), then add the topic"
                )
                yield Stranding(topic=name, file=file, why=why, steps=steps)


def _of_edited_files(lake: Location, old: Topic, new: Topic) -> Iterator[Stranding]:
    """A schema file that tables were made with and that says something else now, or is gone."""
    for index, schema in enumerate(old.schemas):
        if index < len(new.schemas) and new.schemas[index].fingerprint == schema.fingerprint:
            continue
        made = [one for one in _living(lake) if _is_made_with(one, old.name, schema.number)]
        if not made:
            continue
        tables = "; ".join(_named(lake, version) for version in made)
        gone = index >= len(new.schemas)
        said = "it is gone" if gone else "it says something else than before"
        why = f"{said}, and tables were made with it: {tables}"
        ending = Path(schema.file).suffix
        steps = f"{_BACK}, and say what is new in {old.name}.v{len(old.schemas) + 1}{ending}"
        file = schema.file if gone else new.schemas[index].file
        yield Stranding(topic=old.name, file=file, why=why, steps=steps)


def _is_made_with(version: Version, topic: str, number: int) -> bool:
    made = version.schemas.get(topic)
    return isinstance(made, int) and made >= number


def _living(lake: Location) -> list[Version]:
    return [version for version in stored_versions(lake) if version.state == "living"]


def _wrong(lake: Location, version: Version, old: Topics, new: Topics, spark: SparkSession) -> Iterator[str]:
    """What the version cannot read by the new topics, or would show as another type; by the old it could."""
    if not set(version.topics) <= old.keys():
        return
    try:
        known = dict(upstream(lake, version))
        definition: Kind = from_json(version.definition).bound(known)
    except Exception:
        return  # what it reads is damaged, or no longer understood: it says so when it is opened
    before, after = (
        {name: as_of_schema(topics[name], _made_with(version, old[name])) for name in version.topics}
        for topics in (old, new)
    )
    if next(problems(definition, before, spark, known), None) is not None:
        return  # it stands still already, and says why
    found = [problem.why_text for problem in problems(definition, after, spark, known)]
    yield from found
    if not found:
        there = dict(columns(definition, after, spark, known))
        for name, type_ in columns(definition, before, spark, known):
            if there.get(name) != type_:
                yield f"its column {name} is {type_} and would be {there.get(name, 'gone')}"


def _made_with(version: Version, old: Topic) -> MadeWith:
    """What the lake works with, of a version of before that was stored."""
    found = stored_schema(version, old)
    return made_with(old) if found is None else found


def _of_version(lake: Location, version: Version, old: Topic, new: Topic, wrong: list[str]) -> Stranding:
    file = _file(old, new)
    steps = (
        f"first {_BACK}; then release a definition of {version.table} that does without "
        "(`twinlake plan`, `build`, `promote`); then retire the releases that read it (`twinlake retire "
        "--keep 1`); then change the file, `twinlake check`, `twinlake reload`"
    )
    why = f"{_named(lake, version)} could not be read any more: {'; '.join(wrong)}"
    return Stranding(topic=old.name, file=file, why=why, steps=steps)


def _named(lake: Location, version: Version) -> str:
    """`table orders_now (live in release 3; release 1 can be gone back to)`."""
    history = list[Release]()
    with suppress(DamagedError):
        history = release_log.releases(lake)
    holding = [one for one in history if one.tables.get(version.table) == version.name]
    return f"table {version.table} ({_where(holding, history[-1] if history else None)})"


def _where(holding: list[Release], live: Release | None) -> str:
    if not holding:
        return "built, in no release yet"
    said = [f"live in release {live.number}"] if live in holding and live else []
    if earlier := [str(one.number) for one in holding if one != live]:
        said.append(f"release {', '.join(earlier)} can be gone back to")
    return "; ".join(said)
