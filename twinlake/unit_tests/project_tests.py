"""Owns which tests a project has: the files beside its definitions, and the tables that they test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError, near
from twinlake.base.files import shown_path
from twinlake.config.project import Project
from twinlake.definitions.loader import ENDINGS, Loaded, load
from twinlake.kinds.dependencies import ordered, upstream_topics
from twinlake.kinds.kind import Kind
from twinlake.topics.topic import Topic, load_topic
from twinlake.unit_tests.cases import ENDING, MISNAMED, Case, cases, table_of
from twinlake.unit_tests.given import World
from twinlake.unit_tests.source import TestMistake
from twinlake.witness.rows import Evaluator


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith((".yaml", ".yml", *ENDINGS))


def _of_path(name: str, found: Iterable[Path], project: Project) -> str:
    """The table that a file is about: a test file, or the definition beside it."""
    path = Path(name).absolute()
    beside = path.with_name(f"{path.stem}{ENDING}") if path.suffix in ENDINGS else path
    for file in found:
        if file.absolute() == beside or file.resolve() == beside.resolve():
            return table_of(file)
    why = f"it is no <table>{ENDING} below {project.tables}" if path.exists() else "there is no such file"
    raise NotFoundError(f"{name} is no test file of this project", why, "name a table, or its test file")


@dataclass(frozen=True, kw_only=True)
class Collected:
    """The cases that were found, and what is wrong with files and with the definitions that they test."""

    cases: tuple[Case, ...]
    wrong: tuple[TwinlakeError, ...]
    tables: dict[str, Kind]
    topics: dict[str, Topic]


def files(*projects: Project) -> list[Path]:
    """Every test file of these projects, in order."""
    return [
        file
        for project in projects
        for file in sorted(project.tables.rglob("*.test.y*ml"))
        if file.name.endswith((ENDING, MISNAMED))
    ]


def collect(
    sources: Sequence[Project], names: Sequence[str] = (), only: Iterable[Path] | None = None
) -> Collected:
    """The cases of a project's test files, of these tables, or in these files alone; `sources` are the
    project and those whose tables it may read. A name may be the path of a table's test file. NotFoundError
    for a name of no table."""
    return _collected(load(*sources), sources, names, only)


def collect_of(loaded: Loaded, sources: Sequence[Project], table: str) -> Collected:
    """The same of one table, which is among the definitions that were loaded already; its topics are known
    whether or not it has tests."""
    found = _collected(loaded, sources, [table])
    topics = upstream_topics(found.tables[table], found.tables)
    missing = {name: load_topic(name, *sources) for name in topics if name not in found.topics}
    return replace(found, topics=found.topics | missing)


def _collected(
    loaded: Loaded, sources: Sequence[Project], names: Sequence[str], only: Iterable[Path] | None = None
) -> Collected:
    known = {table.name: table for table in loaded.tables}
    found = files(sources[0]) if only is None else list(only)
    names = [_of_path(name, found, sources[0]) if _is_path(name) else name for name in names]
    for name in names:
        if name not in known and not any(table_of(file) == name for file in found):
            what = f"there is no table {name!r}{near(name, known)}"
            raise NotFoundError(what, "no definition has this name", "name another")
    chosen = [file for file in found if not names or table_of(file) in names]
    tables, wrong = bound(known)
    wrong += loaded.wrong
    topics, refused = dict[str, Topic](), list[TwinlakeError]()
    listed: list[Case] = []
    for file, error in _unfit(chosen, found, tables, wrong):
        if error is not None:
            refused.append(error)
            continue
        try:
            for name in upstream_topics(tables[table_of(file)], tables):
                if name not in topics:
                    topics[name] = load_topic(name, *sources)
            listed += cases(file, tables)
        except TwinlakeError as one:
            refused.append(one)
    return Collected(cases=tuple(listed), wrong=tuple(dict.fromkeys(refused)), tables=tables, topics=topics)


def opened(collected: Collected) -> AbstractContextManager[World]:
    """What the cases run in."""
    return world_of(collected.tables, collected.topics)


@contextmanager
def world_of(tables: Mapping[str, Kind], topics: Mapping[str, Topic]) -> Iterator[World]:
    """What cases of these tables run in; the engine ends with the block."""
    engine = Evaluator()
    try:
        yield World(tables, topics, engine)
    finally:
        engine.close()


def known_world(sources: Sequence[Project]) -> AbstractContextManager[World]:
    """All sound tables of these projects, and every topic that they are made of."""
    tables, _ = bound({table.name: table for table in load(*sources).tables})
    names = dict.fromkeys(name for table in tables.values() for name in upstream_topics(table, tables))
    return world_of(tables, {name: load_topic(name, *sources) for name in names})


def matching(found: Iterable[Case], part: str | None) -> list[Case]:
    """Those whose table or name has this text in it, whatever its case."""
    return [case for case in found if part is None or part.lower() in case.title.lower()]


def bound(known: Mapping[str, Kind]) -> tuple[dict[str, Kind], list[TwinlakeError]]:
    """The definitions, each bound to those that it reads; a wrong one is left out, and what reads it."""
    left, wrong = dict(known), list[TwinlakeError]()
    while True:
        try:
            return {table.name: table for table in ordered(left.values())}, wrong
        except UsageError as error:
            wrong.append(error)
            name = error.facts.get("table")
            if name not in left:
                return {}, wrong
            del left[name]


def _unfit(
    chosen: Sequence[Path], found: Sequence[Path], tables: dict[str, Kind], wrong: Sequence[TwinlakeError]
) -> Iterator[tuple[Path, TwinlakeError | None]]:
    """Each file, and what keeps all of it from running: no definition, or another file for the same one."""
    for file in chosen:
        name = table_of(file)
        if file.name.endswith(MISNAMED):
            yield file, TestMistake(file, 1, 1, f"its name ends in {MISNAMED}", f"let it end in {ENDING}")
            continue
        others = [one for one in found if table_of(one) == name and one != file]
        if others:
            why = f"table {name} has another test file: {', '.join(map(shown_path, others))}"
            yield file, TestMistake(file, 1, 1, why, "put the cases into one file")
        elif name in tables:
            yield file, None
        elif broken := why_not(name, wrong):
            yield file, broken
        else:
            why = f"there is no table {name}{near(name, tables)}"
            remedy = "a test file is called as its table is, <table>.test.yaml"
            yield file, TestMistake(file, 1, 1, why, remedy)


def why_not(name: str, wrong: Iterable[TwinlakeError]) -> TwinlakeError | None:
    """Why the table is not there, where its definition is: in a module of its name, or that says so."""
    for error in wrong:
        if error.facts.get("table") == name or Path(error.facts.get("file", "")).stem == name:
            return error
    return None
