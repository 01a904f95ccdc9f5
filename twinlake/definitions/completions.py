"""What an editor can complete in a definition: the columns in reach, the measures, and what these take.

As plain data for any program, and as snippets in the form of VS Code, which other editors read as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from twinlake.kinds import functions
from twinlake.kinds.all import KINDS
from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.measures.measure import Measure, sample
from twinlake.kinds.steps import Explode
from twinlake.kinds.store import Store
from twinlake.kinds.windows import Hopping, Tumbling

Columns = Iterable[tuple[str, str]]
"""(name, Spark type) of a topic's rows or a table's view."""
_MOST = 40
"""Of so many columns at most one is chosen from a list."""


def completions(topics: Mapping[str, Columns], tables: Mapping[str, Columns]) -> dict[str, Any]:
    """By `topics` and `tables` their columns; by `measures`, `kinds` and `parts` (windows and others that are
    written in a definition) what each takes; the names of Spark's `functions`."""
    parts = (Tumbling, Hopping, Explode, Store)
    known = {name: type_ for columns in topics.values() for name, type_ in columns}
    return {
        "topics": {name: _columns(columns) for name, columns in topics.items()},
        "tables": {name: _columns(columns) for name, columns in tables.items()},
        "measures": {
            one.__name__: {
                **_taken(one), "example": dict(one.example),
                "columns": [name for name in known if _fits(one, known[name])],
            }
            for one in MEASURES.values()
        },
        "kinds": {one.__name__: _taken(one) for one in KINDS.values()},
        "parts": {one.__name__: _taken(one) for one in parts},
        "functions": sorted(name for name in functions.known() if name.isidentifier()),
    }


def snippets(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The same as snippets for Python, by a name of each: columns by themselves and after what they are of,
    measures with the columns that they can measure."""
    made = {}
    for what, singular in (("topics", "topic"), ("tables", "table")):
        for owner, columns in found[what].items():
            for one in columns:
                made[f"{singular} {owner}.{one['name']}"] = {
                    "scope": "python",
                    "prefix": [one["name"], f"{owner}.{one['name']}"],
                    "body": _plain(one["name"]),
                    "description": f"{one['type']}, column of {singular} {owner}",
                }
    for name, one in found["measures"].items():
        made[name] = {
            "scope": "python", "prefix": name, "body": f"{name}({', '.join(_arguments(one))})",
            "description": one["about"],
        }  # fmt: skip
    return made


def _columns(columns: Columns) -> list[dict[str, str]]:
    return [{"name": name, "type": type_} for name, type_ in columns]


def _taken(one: type[Any]) -> dict[str, Any]:
    arguments = []
    for field in fields(one):
        if field.metadata.get("stored", True):
            is_needed = field.default is MISSING and field.default_factory is MISSING
            default = None if field.default is MISSING else field.default
            arguments.append({"name": field.name, "needed": is_needed, "default": default})
    return {"about": " ".join((one.__doc__ or "").split()), "arguments": arguments}


def _fits(measure: type[Measure], type_: str) -> bool:
    """Whether a column of this type can be measured."""
    one = sample(measure)
    try:
        return one.refuses({**dict.fromkeys(one.columns, "bigint"), one.of: type_}) is None
    except KeyError:  # it measures no column
        return False


def _arguments(measure: Mapping[str, Any]) -> Iterator[str]:
    """Those that it needs, as stops of a snippet, and those of its example."""
    example = measure["example"]
    needed = (one for one in measure["arguments"] if one["needed"] or one["name"] in example)
    for number, one in enumerate(needed, start=1):
        columns = measure["columns"] if one["name"] == "of" else []
        if 0 < len(columns) <= _MOST:
            yield f'"${{{number}|{",".join(map(_choice, columns))}|}}"'
        elif one["name"] in ("of", "by"):
            yield f'"${{{number}:column}}"'
        else:
            yield f"{one['name']}=${{{number}:{example.get(one['name'], one['name'])}}}"


def _plain(text: str) -> str:
    return text.replace("\\", "\\\\").replace("$", "\\$").replace("}", "\\}")


def _choice(text: str) -> str:
    return _plain(text).replace(",", "\\,").replace("|", "\\|")
