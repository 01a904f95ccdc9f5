"""New table: a first definition, and its short contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from twinlake.base.errors import UsageError
from twinlake.base.files import shown_path
from twinlake.kinds.definition import SQL
from twinlake.kinds.kind import Kind
from twinlake.kinds.starting import named, sources_needed, starting
from twinlake.scaffold.contract_text import table_contract
from twinlake.scaffold.definition_text import module_text
from twinlake.topics.avro_type import COLUMN_NAME
from twinlake.topics.topic import Topic


@dataclass(frozen=True, kw_only=True)
class Made:
    """By their names the texts of the files that define tables, the text of a contract, and the definitions,
    the asked one last."""

    files: dict[str, str]
    contract: str
    tables: tuple[Kind, ...]


def refuse_name(name: str, tables: Iterable[Kind], topics: Iterable[str]) -> None:
    """UsageError for what no table can be called, or what is called so already; case is ignored."""
    if not COLUMN_NAME.fullmatch(name):
        raise UsageError(
            f"a table cannot be called {name!r}", "a name has letters, digits and _, a letter first",
            "choose another name",
        )  # fmt: skip
    for table in tables:
        if table.name.lower() == name.lower():
            place = f" in {shown_path(table.place.file)}:{table.place.line}" if table.place else ""
            raise UsageError(
                f"there is a table {table.name} already", f"it is defined{place}", "choose another name"
            )
    for topic in topics:
        if topic.lower() == name.lower():
            raise UsageError(
                f"a table cannot be called {name} here", f"topic {topic} has the contract of this name",
                "choose another name",
            )  # fmt: skip


def of_sources(
    name: str,
    kind: str,
    asked: Sequence[str],
    topics: Mapping[str, Topic],
    tables: Iterable[Kind],
    folder: str,
    in_sql: bool = False,
) -> Made:
    """A table of this kind over topics or tables; unless it is asked for, over the only topic there is.

    In Python those that it needs beside it are in its file, in SQL each has one. `folder` is that of tables.
    """
    tables = tuple(tables)
    made = starting(kind, name, _sources(kind, asked, topics), topics, tables)
    for beside in made[:-1]:  # two of one name are both left out
        refuse_name(beside.name, tables, topics)
    table = made[-1]
    read = " and ".join(dict.fromkeys((*table.inputs, *table.reads)))
    about = f"What one row of {name} is: say it here. A first definition over {read}, to go on from."
    columns = [one for one in table.output if one not in table.implied]
    files = _statements(made, about) if in_sql else {f"{name}.py": module_text(made, about)}
    contract = table_contract(name, columns, f"{folder}/{name}{SQL if in_sql else '.py'}")
    return Made(files=files, contract=contract, tables=made)


def _statements(made: Sequence[Kind], about: str) -> dict[str, str]:
    from twinlake.kinds.sql_form.writing import statement

    *others, table = made
    beside = {
        f"{one.name}{SQL}": statement(one, f"What {table.name} reads.", in_order=False) for one in others
    }
    return {**beside, f"{table.name}{SQL}": statement(table, about, in_order=False)}


def _sources(kind: str, asked: Sequence[str], topics: Mapping[str, Topic]) -> Sequence[str]:
    least, most = sources_needed(kind)
    known = f"topics: {', '.join(topics)}" if topics else "there is no topic yet: `twinlake new topic NAME`"
    if not asked and least == 1 and len(topics) == 1:
        return tuple(topics)
    if not asked and least == 1:
        raise UsageError("it is not said what the table is made of", known, "name it with --from")
    if len(asked) < least:
        raise UsageError(
            f"a table of kind {named(kind)} joins two sources",
            f"--from is given {len(asked)} times; {known}",
            "name both, the left one first: --from LEFT --from RIGHT",
        )  # fmt: skip
    if len(asked) > most:
        raise UsageError(
            f"a table of kind {named(kind)} is made of {most}, not {len(asked)}",
            "--from is given too often", "name fewer; the definition is yours to go on from",
        )  # fmt: skip
    return asked
