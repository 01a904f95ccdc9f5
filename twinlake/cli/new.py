"""`twinlake new`: projects, topics and tables, with all that a person would otherwise copy."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.files import refuse_existing, shown_path, write_new
from twinlake.cli.options import whole
from twinlake.cli.output import load_settings, say, tell
from twinlake.config.library import TEMPLATE
from twinlake.config.project import FOLDERS, Project
from twinlake.config.settings import Settings, refuse_home
from twinlake.definitions import loader
from twinlake.kinds.definition import SQL
from twinlake.kinds.dependencies import upstream_topics
from twinlake.kinds.kind import Kind
from twinlake.topics import formats
from twinlake.topics.topic import Topic, load_topic, topic_names

if TYPE_CHECKING:
    from twinlake.scaffold.new_topic import Chosen, Made
    from twinlake.scaffold.sample import JsonObject

_HIDDEN = {"gitignore": ".gitignore", "gitkeep": ".gitkeep", "github": ".github"}
"""Names in the template -> in a project: a package leaves hidden files out."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_STDIN = Path("-")


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    new = typer.Typer(help="Make what a person would otherwise copy.", no_args_is_help=True)
    new.command("project")(project_command)
    new.command("topic")(topic_command)
    new.command("table")(table_command)
    app.add_typer(new, name="new")


def project_command(
    folder: Annotated[Path, typer.Argument(help="is made; its name is the project's")],
) -> None:
    """Make a project that runs at once: one topic, one table, their contracts, DAGs, sample records."""
    root = folder.expanduser().absolute()
    if not _NAME.fullmatch(root.name):
        raise UsageError(
            f"a project cannot be called {root.name!r}",
            "names have letters, digits, _ and -, a letter first", "choose another folder",
        )  # fmt: skip
    if root.exists() and (not root.is_dir() or any(one.name != ".git" for one in root.iterdir())):
        why = "there is something in it already" if root.is_dir() else "it is a file"
        raise UsageError(f"{root} cannot become a project", why, "name a new folder")
    outer = None
    with suppress(UsageError):  # one that is torn says nothing of its folders
        outer = Project.find(root.parent)
    if outer is not None and (around := outer.folder_around(root)):
        why = f"it is in {around}, which belongs to the project {outer.root}"
        raise UsageError(f"{root} cannot become a project", why, "choose another folder")
    if not os.environ.get("TWINLAKE_HOME"):
        refuse_home(root / FOLDERS["data"].usual)
    write_new({root / place: content for place, content in files(root.name)})
    say(f"{shown_path(root)}: a project with topic visits and table visits_per_page")
    there = "" if root == Path.cwd() else f"`cd {shlex.quote(shown_path(root))}`, "
    tell(f"next: {there}`twinlake up`, `twinlake produce visits --count 1000`, then")
    tell('`twinlake query "SELECT * FROM serve.visits_per_page"`; README.md says where what is')


def files(name: str) -> Iterator[tuple[str, str]]:
    """By its place in a project of this name, each file's content."""
    for file in sorted(TEMPLATE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            place = (_HIDDEN.get(part, part) for part in file.relative_to(TEMPLATE).parts)
            yield "/".join(place), file.read_text().replace("PROJECT_NAME", name)


def topic_command(
    name: Annotated[str, typer.Argument(help="of the topic in Kafka, too")],
    sample: Annotated[
        Path | None, typer.Option(help="a file of JSON records, one a line or an array; - reads stdin")
    ] = None,
    from_kafka: Annotated[
        bool, typer.Option("--from-kafka", help="look at its records, or at its schema in the registry")
    ] = False,
    event_time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="says when an event happened, where it is not clear")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="tells two events apart; else event_id")
    ] = None,
    records: Annotated[
        int, typer.Option(parser=whole(1, 1_000_000), metavar="NUMBER", help="to look at, with --from-kafka")
    ] = 1000,
) -> None:
    """Write the contract of a topic: of a sample of its JSON, of its schema, or one to begin with.

    Every record of the sample is valid by it; numbers, times and what is nested have their types, and a field
    that a record lacks is optional. A topic whose records name a schema gets that from the registry.
    """
    from twinlake.scaffold import new_topic
    from twinlake.topics.schema import load_schema

    settings = load_settings()
    project = settings.project
    new_topic.refuse_name(name)
    if sample is not None and from_kafka:
        raise UsageError(
            "--sample and --from-kafka are given", "the contract is made of one of them", "choose"
        )
    contract = project.contracts / f"{name}.yaml"
    endings = formats.ENDINGS.values()
    schemas = sorted(one for end in endings for one in project.schemas.glob(f"{name}.v*.{end}"))
    refuse_existing(contract, *(schemas if sample or from_kafka else ()))
    if name in topic_names(*settings.sources[1:]):
        raise UsageError(f"there is a topic {name} already", "an example has it", "choose another name")
    from twinlake.releases.check import refused_tables

    for wrong in refused_tables(loader.load(*settings.sources).tables, [name]):
        raise UsageError(f"a topic cannot be called {name} here", wrong.what, "choose another name")
    chosen = new_topic.Chosen(event_time=event_time, id=id_column)
    if sample is not None:
        made = new_topic.of_sample(name, _records(sample), _name_of(sample), chosen)
    elif from_kafka:
        made = _of_kafka(settings, name, records, chosen)
    elif schemas:
        made = new_topic.of_schema(max(map(load_schema, schemas), key=lambda one: one.number), chosen)
    else:
        made = new_topic.of_nothing(name, chosen)
    schema = {project.schemas / f"{name}.v1.{made.ending}": made.schema} if made.schema else {}
    write_new({**schema, contract: made.contract})
    topic = load_topic(name, project)
    for file in schema:
        say(f"{shown_path(file)}: the newest schema {name}-value of the registry")
    columns = ", ".join(one.name for one in topic.contract.columns)
    say(f"{shown_path(contract)}: topic {name}, event time {topic.contract.event_time}, columns {columns}")
    for remark in made.remarks:
        tell(remark)
    tell("next: look the contract through, then `twinlake reload` (or `twinlake up`, where nothing runs);")
    tell(f"`twinlake new table NAME --from {name}` makes a table of it")


def table_command(
    name: Annotated[str, typer.Argument(help="of the table, of its file and of its contract")],
    source: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="TOPIC", help="a topic or table; twice where the kind joins two"),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="Aggregate|Events|Latest|TopRows|History|Trailing|Sessions|IntervalJoin|AsOfJoin|Rolling|Union|Derived",
            help="what the table does with its input",
        ),
    ] = "Aggregate",
    in_sql: Annotated[
        bool, typer.Option("--sql", help="write it as one SQL statement, not in Python")
    ] = False,
) -> None:
    """Write a first definition of a table, and a short contract with places for what it means.

    Columns are those of the topic; what is grouped by, counted and added up is a guess to go on from.
    Unless --from says it, the table is made of the only topic that there is.
    """
    from twinlake.scaffold import new_table
    from twinlake.unit_tests.cases import ENDING

    settings = load_settings()
    project = settings.project
    tables = loader.load(*settings.sources).tables
    topics, broken = _topics(settings)
    new_table.refuse_name(name, tables, (*topics, *broken))
    module = project.tables / f"{name}{SQL if in_sql else '.py'}"
    contract, test = project.contracts / f"{name}.yaml", module.with_name(f"{name}{ENDING}")
    refuse_existing(*(module.with_suffix(ending) for ending in loader.ENDINGS), contract, test)
    for one in source or (() if topics else broken):
        if one in broken:
            raise broken[one]
    where = project.tables.relative_to(project.root).as_posix()
    made = new_table.of_sources(name, kind, source or (), topics, tables, where, in_sql)
    written = {project.tables / file: text for file, text in made.files.items()}
    refuse_existing(*written)
    from twinlake.releases.check import refused_tables

    for wrong in refused_tables([*tables, *made.tables], topics):
        if wrong.table in {one.name for one in made.tables}:
            raise UsageError(f"a table cannot be called {wrong.table} here", wrong.why_text, "rename it")
    table = made.tables[-1]
    first = _first_test([*tables, *made.tables], topics, name)
    tested = {} if first is None else {test: first}
    write_new({**written, contract: made.contract, **tested})
    read = ", ".join([*table.inputs, *table.reads])
    beside = "".join(f", with {one.name} beside it" for one in made.tables[:-1])
    say(f"{shown_path(module)}: table {name}, {table.kind} of {read}{beside}")
    say(f"{shown_path(contract)}: what it promises, to be filled in")
    if tested:
        say(f"{shown_path(test)}: its unit test, with what it shows of a few records")
    tell("next: `twinlake check`, `twinlake test`; then `twinlake up` where nothing runs, else")
    tell("`twinlake plan`, `twinlake build` and `twinlake promote`")


def _first_test(tables: Sequence[Kind], topics: Mapping[str, Topic], name: str) -> str | None:
    """None where something upstream is wrong: nobody knows what the table shows."""
    from twinlake.unit_tests.project_tests import bound, world_of
    from twinlake.unit_tests.writing import first_test

    sound, _ = bound({one.name: one for one in tables})
    if name not in sound or any(one not in topics for one in upstream_topics(sound[name], sound)):
        return None
    with world_of(sound, topics) as world:
        return first_test(world, name)


def _records(sample: Path) -> list[JsonObject]:
    from twinlake.scaffold.sample import records_in

    try:
        data = sys.stdin.buffer.read() if sample == _STDIN else sample.expanduser().read_bytes()
        return records_in(data.decode("utf-8-sig"), _name_of(sample))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{sample} cannot be read", getattr(error, "strerror", None) or str(error),
            "name a file of JSON records in UTF-8",
        ) from error  # fmt: skip


def _name_of(sample: Path) -> str:
    return "stdin" if sample == _STDIN else sample.name


def _of_kafka(settings: Settings, name: str, most: int, chosen: Chosen) -> Made:
    """By the login of ingest at the Kafka that runs here, or that twinlake.toml names."""
    from twinlake.scaffold import kafka_topic, new_topic
    from twinlake.topics.kafka import Kafka
    from twinlake.topics.registry import Registry

    if settings.values.kafka.is_external and not settings.services_file.exists():
        login, registry = settings.values.kafka.login("ingest"), settings.values.registry
    else:
        services = settings.services()
        login, registry = services.kafka("ingest"), services.registry()
    found = kafka_topic.look(name, Kafka(login), lambda: Registry(registry), most)
    return new_topic.of_kafka(name, found, chosen)


def _topics(settings: Settings) -> tuple[dict[str, Topic], dict[str, TwinlakeError]]:
    """Every topic, and by its name what is wrong with one whose files are."""
    topics, broken = dict[str, Topic](), dict[str, TwinlakeError]()
    for name in topic_names(*settings.sources):
        try:
            topics[name] = load_topic(name, *settings.sources)
        except TwinlakeError as error:
            broken[name] = error
    return topics, broken
