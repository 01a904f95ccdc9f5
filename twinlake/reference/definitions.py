"""docs/definitions.md from the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import yaml

import twinlake
from twinlake.kinds.all import KINDS
from twinlake.kinds.arguments import arguments, parts
from twinlake.kinds.latest import mirror
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.sql_form.writing import KINDS as IN_SQL
from twinlake.kinds.starting import sources_needed
from twinlake.reference import row
from twinlake.scaffold.contract_text import TopicTerms, topic_contract
from twinlake.scaffold.new_table import Made, of_sources
from twinlake.topics.contract import JSON, Column
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.topic import Topic, json_topic

HEAD = """# Arguments of definitions

Made from the code by `python -m twinlake.reference`; a test compares.

Every kind of table, with each argument of its definition. What a kind is for is in [kinds](kinds.md), also
how its [steps](kinds.md#steps) follow each other and which clock [`final`](kinds.md#time) goes by; what can
be measured is in [measures](measures.md), where definitions are written in [add a table](tables.md).

All arguments are given by name. A *text* is a string, and SQL is a text of Spark SQL. A *duration* is a text
such as "90 seconds", "30 minutes", "3 hours", "1 day", "2 weeks" or "PT15M". A tuple of one has a comma:
`keys=("user_id",)`.

The example of a kind is what `twinlake new table NAME --kind KIND` writes over a topic `searches`, or over
`searches` and `clicks`, without its first line; the fields of both are `event_id`, `user_id`, `query` or
`page`, `cost`, and `searched_at` or `clicked_at`.
"""
PARTS = """## Parts

What is written within a definition.
"""
MIRROR = """### mirror

`from twinlake import mirror` makes the arguments of a `Latest` that mirrors a database's table:
"""
_SOURCES = {"searches": ("query", "searched_at"), "clicks": ("page", "clicked_at")}


def example_topics() -> dict[str, Topic]:
    """The topics of the examples."""
    found = {}
    for name, (about, time) in _SOURCES.items():
        columns = (
            Column(name="event_id", type="string", required=True),
            Column(name="user_id", type="string", required=True),
            Column(name=about, type="string"),
            Column(name="cost", type="decimal(12,2)"),
            Column(name=time, type="timestamp", required=True),
        )
        terms = TopicTerms(name=name, columns=columns, format=JSON, event_time=time, unique="event_id")
        document = yaml.safe_load(topic_contract(terms))
        found[name] = json_topic(name, parse_contract(document, name=name, file=f"contracts/{name}.yaml"))
    return found


def example(kind: str) -> str:
    """The module that `twinlake new table` writes for a table of this kind, without its docstring."""
    _, _, module = _written(kind).files[f"my_{kind}.py"].partition("\n\n")
    return f"```python\n{module}```"


def statements(kind: str) -> Iterator[str]:
    """The same in SQL, where that has a form for the kind, without the first lines."""
    files = _written(kind, in_sql=True).files if kind in IN_SQL else {}
    for file, text in files.items():
        _, _, statement = text.partition("\n")
        yield from (f"[In SQL](sql.md), as `{file}`:", "", f"```sql\n{statement}```", "")


def _written(kind: str, in_sql: bool = False) -> Made:
    topics = example_topics()
    asked = [*topics][: sources_needed(kind)[0]]
    return of_sources(f"my_{kind}", kind, asked, topics, (), "jobs/tables", in_sql)


def table(cls: type[Any]) -> Iterator[str]:
    """Every argument of a kind or a part. ValueError for one that nobody has explained."""
    yield "| argument | is | default | meaning |"
    yield "|---|---|---|---|"
    for one in arguments(cls):
        if not one.meaning:
            raise ValueError(f"{cls.__name__}.{one.name} has no text below it: say what it means")
        default = "required" if one.default is None else f"`{one.default}`"
        yield row(f"`{one.name}`", _linked(one.type), default, one.meaning)


def text() -> str:
    """The whole page."""
    lines = [HEAD]
    for name, kind in KINDS.items():
        lines += [f"## {kind.__name__}", "", f"{_of_module(kind)} {_import(kind)}", ""]
        lines += [*table(kind), "", example(name), "", *statements(name)]
        if kind.__module__ == mirror.__module__:
            lines += [MIRROR, f"`mirror{_signature()}`", "", *_paragraphs(inspect.getdoc(mirror) or "")]
    lines.append(PARTS)
    used = _used(KINDS.values())
    for part in parts(KINDS.values()):
        lines += [f"### {part.__name__}", "", _of_class(part), ""]
        lines += [f"For {', '.join(used[part])}. {_import(part)}", "", *table(part), ""]
    return "\n".join(lines).rstrip() + "\n"


def _linked(type_: str) -> str:
    """A type in words, each part and measures as a link."""
    return re.sub(r"\w+", lambda found: _links().get(found[0], found[0]), type_)


@cache
def _links() -> dict[str, str]:
    measures = {Measure.__name__: f"[{Measure.__name__}](measures.md)"}
    return measures | {
        part.__name__: f"[{part.__name__}](#{part.__name__.lower()})" for part in parts(KINDS.values())
    }


def _used(kinds: Iterable[type[Any]]) -> dict[type[Any], list[str]]:
    """By part, what of which kind it is written for."""
    found: dict[type[Any], list[str]] = {}
    for kind in kinds:
        for part in parts([kind]):
            names = [one.name for one in arguments(kind) if part.__name__ in one.type.split()]
            found.setdefault(part, []).extend(f"`{name}` of `{kind.__name__}`" for name in names)
    return found


def _of_module(kind: type[Any]) -> str:
    """The first sentences of the kind's module, which begin with its name."""
    said = inspect.getdoc(inspect.getmodule(kind)) or ""
    first = " ".join(said.partition("\n\n")[0].split()).removeprefix(f"{kind.__name__}: ")
    return first[:1].upper() + first[1:]


def _of_class(part: type[Any]) -> str:
    return " ".join((inspect.getdoc(part) or "").split())


def _import(cls: type[Any]) -> str:
    place = "twinlake" if cls.__name__ in twinlake.__all__ else cls.__module__
    return f"`from {place} import {cls.__name__}`"


def _signature() -> str:
    given = inspect.signature(mirror).parameters
    return f"({', '.join('*, ' * (one == 'keys') + one for one in given)})"


def _paragraphs(said: str) -> Sequence[str]:
    return [" ".join(one.split()) + "\n" for one in said.split("\n\n")]
