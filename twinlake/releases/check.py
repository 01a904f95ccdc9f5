"""Check: loads every definition, contract and schema, and tells everything that is wrong with them.

What can be said without Spark is said without it, and first: a misspelt name costs nobody a JVM. The rest is
left, by name, to a check that may start one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import ContractError, DefinitionError, TwinlakeError, near
from twinlake.base.location import Location
from twinlake.config.project import Project
from twinlake.definitions.fingerprint import fingerprint
from twinlake.definitions.loader import Loaded, load
from twinlake.definitions.without_spark import Typist
from twinlake.kinds.analysis import columns, problems, warnings
from twinlake.kinds.dependencies import ordered, unknown
from twinlake.kinds.kind import Kind
from twinlake.lake import formats
from twinlake.lake.log import active_topics, topic_views
from twinlake.reading.views import late_name
from twinlake.releases import findings
from twinlake.releases.checked import Checked, Found, errors, rests_on
from twinlake.topics.contract import Contract
from twinlake.topics.contract_file import load_contract, load_promise
from twinlake.topics.schema import FILE_NAME, FORM
from twinlake.topics.short_contract import contradictions
from twinlake.topics.topic import Topic, load_topic, topic_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(kw_only=True)
class Report:
    """What was found: one entry per topic and table that could be loaded, every problem and warning."""

    topics: list[dict[str, Any]] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    problems: list[TwinlakeError] = field(default_factory=list)
    warnings: list[TwinlakeError] = field(default_factory=list)
    left: list[TwinlakeError] = field(default_factory=list)
    """What only a check with Spark can say."""
    unwarned: list[str] = field(default_factory=list)
    """The tables of which nobody has said yet whether an expression raises for some record."""

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok, "topics": self.topics, "tables": self.tables,
            "problems": [findings.to_json(problem) for problem in self.problems],
            "warnings": [findings.to_json(warning) for warning in self.warnings],
            "only_full": [findings.to_json(one) for one in self.left], "unwarned": self.unwarned,
        }  # fmt: skip


class NoSpark(Exception):
    """Spark would have to say something, and may not be started."""


def never() -> SparkSession:
    """In place of what starts Spark."""
    raise NoSpark


def check(
    sources: Sequence[Project],
    start_spark: Callable[[], SparkSession] = never,
    checked: Checked | None = None,
    lake: Location | None = None,
    loaded: Loaded | None = None,
) -> Report:
    """Everything in these projects, and whether the lake could go on with it; `loaded` are their definitions
    where somebody has read them already.

    Spark is started only when there is a definition worth analysing, about which `checked` knows nothing.
    """
    report, start_spark = Report(), cache(start_spark)
    _refuse_schema_names(sources, report)
    named = topic_names(*sources)
    topics = {name: topic for name in named if (topic := _topic(name, sources, report))}
    loaded = loaded or load(*sources)
    report.problems.extend(loaded.wrong)
    tables = loaded.tables
    contracts = _contracts(sources, topics, report)
    _sets_match(sources, loaded, contracts, lake, report)
    others = {table.name for table in tables}
    known = [table for table in tables if _inputs_known(table, topics, named, others, report)]
    listed = _ordered(known, tables, report)
    sound = Sound(start_spark, checked or Checked())
    with closing(sound.typist):
        for table in listed:
            if all(name in sound.tables for name in table.reads):  # what is wrong with others is reported
                check_table(table, topics, contracts.get(table.name), report, sound)
    sound.checked.save()
    _name_unchecked(tables, sound, report)
    if lake is not None:
        _against(lake, topics, start_spark, report)
    return report


def _name_unchecked(tables: Sequence[Kind], sound: Sound, report: Report) -> None:
    """Of those of which nothing is said, for what they read is wrong."""
    wrong = {problem.table for problem in report.problems if isinstance(problem, DefinitionError)}
    if left := [table.name for table in tables if table.name not in {*sound.tables, *wrong}]:
        what = f"not checked, for what they read is wrong: {', '.join(left)}"
        report.warnings.append(TwinlakeError(what, "", ""))


@dataclass(frozen=True)
class Sound:
    """The sound definitions so far, and what their findings rest on. Spark is started by its first use."""

    spark: Callable[[], SparkSession]
    checked: Checked = field(default_factory=Checked)
    tables: dict[str, Kind] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    rest_on: dict[str, str] = field(default_factory=dict)
    typist: Typist = field(default_factory=Typist)


def _against(
    lake: Location, topics: Mapping[str, Topic], start_spark: Callable[[], SparkSession], report: Report
) -> None:
    try:
        formats.refuse_other(lake)
        if not active_topics.active_topic_names(lake):
            return  # there is no lake yet, or nothing in it: what would look into it is slow to import
        from twinlake.releases.stranded import stranded

        report.problems.extend(one.refused for one in stranded(lake, topics, start_spark))
    except NoSpark:
        report.left.append(TwinlakeError(f"what changed files of topics mean for the lake {lake}", "", ""))
    except (TwinlakeError, OSError) as error:
        why = error.what if isinstance(error, TwinlakeError) else str(error)
        what = f"what the files change for the lake {lake} is not known: {why}"
        report.warnings.append(TwinlakeError(what, "", "the lake server looks again when it starts"))


def check_table(
    table: Kind, topics: Mapping[str, Topic], contract: Contract | None, report: Report, sound: Sound
) -> None:
    """One definition: row-local, deterministic, typed, and in agreement with its contract.

    `sound` has the definitions before it, which it may read; it is added to them where nothing is wrong.
    """
    key = rests_on(table, topics, sound.tables, sound.rest_on)
    found = sound.checked.get(key)
    if found is None:
        sound.typist.topics.update(topics)
        typed = sound.typist.typed(table)
        report.problems.extend(typed.wrong)
        if typed.wrong:
            return
        try:
            found = _by_spark(table, topics, sound)
        except NoSpark:
            report.left.extend(typed.left)
            if typed.columns is not None:
                report.unwarned.append(table.name)
            found = Found(fingerprint="", columns=typed.columns or ())
        else:
            sound.checked.put(key, found)
    if found.wrong:
        report.problems.extend(errors(table.name, found.wrong))
        return
    sound.tables[table.name], sound.rest_on[table.name] = table, key
    if found.columns:
        sound.typist.know(table, found.columns)
    if found.fingerprint:
        sound.fingerprints[table.name] = found.fingerprint
    report.warnings.extend(errors(table.name, found.warnings))
    disagreements = [] if contract is None or not found.columns else _disagreements(table, found, contract)
    report.problems.extend(disagreements)
    if not disagreements:
        report.tables.append({
            "name": table.name, "kind": table.kind, "inputs": list(table.inputs), "reads": list(table.reads),
            "fingerprint": found.fingerprint or None,
            "columns": [{"name": name, "type": type_} for name, type_ in found.columns] or None,
        })  # fmt: skip


def _by_spark(table: Kind, topics: Mapping[str, Topic], sound: Sound) -> Found:
    """What Spark says of a definition."""
    spark = sound.spark()
    if wrong := list(problems(table, topics, spark, sound.tables)):
        return Found.of_wrong(wrong)
    return Found.of(
        fingerprint(table, topics, spark, sound.tables, sound.fingerprints),
        columns(table, topics, spark, sound.tables),
        warnings(table, topics, spark, sound.tables),
    )


def _refuse_schema_names(sources: Sequence[Project], report: Report) -> None:
    """Nobody reads a schema under another name: its fields would be missing, without a word."""
    for path in sorted(path for source in sources for path in source.schemas.glob("[!.]*")):
        if not FILE_NAME.fullmatch(path.name):
            why = f"the file name is not {FORM}, like orders.v2.avsc"
            report.problems.append(ContractError(path, "", why, "rename the file"))


def _topic(name: str, sources: Sequence[Project], report: Report) -> Topic | None:
    try:
        topic = load_topic(name, *sources)
    except TwinlakeError as error:
        report.problems.append(error)
        return None
    report.topics.append({
        "name": name, "schema": topic.newest.number, "contract": topic.contract.version,
        "fingerprint": topic.contract.fingerprint,
    })  # fmt: skip
    return topic


def _contracts(sources: Sequence[Project], topics: dict[str, Topic], report: Report) -> dict[str, Contract]:
    found = {name: topic.contract for name, topic in topics.items()}
    known_topics = topic_names(*sources)
    for path in sorted(path for source in sources for path in source.contracts.glob("*.y*ml")):
        if path.suffix != ".yaml":
            report.problems.append(
                ContractError(path, "", "a contract's file name ends in .yaml", "rename it")
            )
        elif path.stem in topics or path.stem not in known_topics:
            try:
                if path.stem not in topics:
                    found[path.stem] = load_contract(path)
                load_promise(path)
            except TwinlakeError as error:
                report.problems.append(error)
    return found


def _sets_match(
    sources: Sequence[Project],
    loaded: Loaded,
    contracts: Mapping[str, Contract],
    lake: Location | None,
    report: Report,
) -> None:
    """Topics, tables and contracts name the same, and files as their tables; no table is named as a view."""
    tables = loaded.tables
    names = {table.name for table in tables}
    places = Counter(table.place.file for table in tables if table.place)
    for table in tables:
        file = table.place.file if table.place else ""
        # of several in a file, and those that a neighbour makes, the name is free
        if places[file] == 1 and Path(file).stem != table.name and not Path(file).stem.startswith("_"):
            report.problems.append(
                table.error(f"the file is not named {table.name}.py", "rename one of them")
            )
    topics = set(topic_names(*sources))
    active = () if lake is None else _active(lake)
    report.problems.extend(refused_tables(tables, sorted({*topics, *active})))
    if not tables or loaded.wrong:  # a module that is wrong may have defined the table of a contract
        return
    known = names | topics
    for path in sorted(path for source in sources for path in source.contracts.glob("*.yaml")):
        if path.stem not in known and path.stem in contracts:  # one that is torn says no more whose it is
            why = "there is no topic and no table of this name"
            remedy = "define one, see docs/tables.md and docs/schemas.md; or remove the contract"
            report.problems.append(ContractError(path, "", why, remedy))


def _active(lake: Location) -> list[str]:
    """The topics that the lake works with; none where it cannot be read, which is reported elsewhere."""
    with suppress(OSError, TwinlakeError):
        return active_topics.active_topic_names(lake)
    return []


def _inputs_known(
    table: Kind, topics: Mapping[str, Topic], named: Sequence[str], others: set[str], report: Report
) -> bool:
    """Whether all its topics are loaded; one whose files are there has an error of its own already."""
    unknown = [name for name in table.inputs if name not in topics]
    for name in unknown:
        if name not in named:
            why = f"input {name!r} is not a topic{near(name, named, listed=False)}"
            remedy = f"known: {', '.join(named) or 'none; `twinlake new topic` makes one'}"
            if name in others:
                why = f"input {name!r} is a table, and no topic"
                remedy = "read it in a Derived; in SQL say `-- reads` and `-- keys` on top"
            report.problems.append(table.error_at_text(name, why, remedy))
    return not unknown


def _ordered(checked: list[Kind], tables: tuple[Kind, ...], report: Report) -> list[Kind]:
    """Those that can be analysed, each after those that it reads; the others' faults are reported."""
    listed = {table.name: table for table in tables}
    left = []
    for table in checked:
        found = list(unknown(table, listed))
        report.problems.extend(found)
        if not found:
            left.append(table)
    while True:
        names = {table.name for table in left}
        if (known := [table for table in left if names.issuperset(table.reads)]) != left:
            left = known
            continue
        try:
            return ordered(left)
        except DefinitionError as error:  # a cycle; who reads one of its tables cannot be analysed either
            report.problems.append(error)
            left = [table for table in left if table.name != error.table]


def _disagreements(table: Kind, found: Found, contract: Contract) -> list[DefinitionError]:
    """Where the view and its contract differ. A topic's says all columns but those that the kind implies;
    what a table's own leaves out is taken from the definition."""
    shown = list(found.columns)
    if not contract.is_topic:
        against = contradictions(contract, dict(shown))
        remedy = "change the definition or the contract"
        return [table.error(f"{contract.file}: {'; '.join(against)}", remedy)] if against else []
    promised = [(column.name, column.type) for column in contract.columns]
    shown = [(name, type_) for name, type_ in shown if name not in table.implied or contract.column(name)]
    if shown == promised:
        return []
    missing = [f"{name} {type_}" for name, type_ in promised if (name, type_) not in shown]
    more = [f"{name} {type_}" for name, type_ in shown if (name, type_) not in promised]
    faults = []
    if missing:
        faults.append(f"{contract.file} promises {', '.join(missing)}")
    if more:
        faults.append(f"the view has {', '.join(more)}")
    why = "; ".join(faults) or f"the columns are in another order than in {contract.file}"
    return [table.error(why, "change the definition or the contract")]


def refused_tables(tables: Iterable[Kind], topics: Iterable[str]) -> Iterator[DefinitionError]:
    """The tables that would hide the view of a topic, or of what came late for another table; names differ by
    more than case."""
    named = {table.name.lower(): table for table in tables}
    for table in named.values():
        taken = named.get(late_name(table.name).lower())
        if taken is not None and table.late("") is not None:
            why = f"it has the name of the view of what came late for {table.name}"
            yield taken.error(why, "rename one of them")
    for topic in topics:
        for name in topic_views.names(topic):
            if name.lower() in named:
                why = f"it has the name of a view that every release has of topic {topic}, {name}"
                yield named[name.lower()].error(why, "rename it")
