"""docs/contracts.md from the code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twinlake.reference import row
from twinlake.topics.contract_column import INSIDE, LOGICAL, NESTED
from twinlake.topics.contract_file import OPTIONS, UNENFORCED
from twinlake.topics.contract_keys import COLUMN, KEYS, PROMISES, UNSAID
from twinlake.topics.contract_schema import contract_schema
from twinlake.topics.schema_tree import Node, objects, root
from twinlake.topics.topic_properties import CHOICES, MEANINGS, TOPIC_PROPERTIES, WITHOUT

HEAD = """# Keys of contracts

Made from the code by `python -m twinlake.reference`; a test compares.

A contract is `contracts/<name>.yaml` of a topic or of a table, in the words of the
[Open Data Contract Standard](https://bitol-io.github.io/open-data-contract-standard/), version 3. A key that
is not on this page is refused. `twinlake new topic` and `twinlake new table` write a first one; an
[editor](editors.md) completes keys by the same [schema](editor/contract.schema.json). How a contract is
changed is in [topics and schemas](schemas.md), what a table's may leave out in [add a table](tables.md), what
becomes of a record that breaks a rule in [verdicts and reasons](unit-tests.md#verdicts-and-reasons).

A contract with `customProperties` is a topic's. A table's has none, and may leave out every other key:
what it does not say is the definition's.

## What Twinlake reads

`[]` is an item of a list. *Needed*: of `topics`, or of all contracts that have what the key is in.

| key | of | needed | is | means |
|---|---|---|---|---|
"""
PROPERTIES = """
## Properties of a topic

Items of `customProperties`, each with `property` and `value`. A *duration* is a text such as "90 seconds",
"30 minutes", "3 hours", "21 days", "2 weeks" or "PT15M".

| property | value | without it | means |
|---|---|---|---|
"""
TIMES = """
## Promises of time

Items of `slaProperties`, each with `property`, `value` and `unit`.

| property | of | means |
|---|---|---|
"""
TYPES = """
## Types

| logicalType | physicalType | rules |
|---|---|---|
"""
REST = """
## What else the standard has

Of these the form is validated, and nothing else: they are for people and other programs, and the words are
the standard's. \\* is needed where the object is there. An object that stands in several places is listed
once.
"""
_SHAPE = {"name", "logicalType", "physicalType", *(inside for _, inside in NESTED.values())}
_VALUES = {"eventTime": "a column's name"}


def text() -> str:
    """The whole page."""
    tree = root(contract_schema())
    rest = [line for path, node in objects(tree) for line in _rest(path, node)]
    return "\n".join([
        HEAD + "\n".join(_read(tree)), PROPERTIES + "\n".join(_properties()), TIMES + "\n".join(_promises()),
        TYPES + "\n".join(_types()), "", *_refused(), REST, *rest,
    ]).rstrip() + "\n"  # fmt: skip


def is_read(path: str, name: str) -> bool:
    """Whether a key of the object there means something to Twinlake: within a column, what says its type."""
    return _joined(path, name) in KEYS or (path.startswith(f"{COLUMN}.") and name in _SHAPE)


def _read(tree: Node) -> Iterator[str]:
    """The keys that mean something to Twinlake. KeyError for one that no contract may have."""
    for path, key in KEYS.items():
        node = tree.at(path)
        yield row(
            f"`{path}`", key.of, key.needed or node.needed, key.type or node.described, key.meaning
        )  # fmt: skip


def _properties() -> Iterator[str]:
    for name in TOPIC_PROPERTIES:
        choices = " or ".join(f"`{one}`" for one in CHOICES.get(name, ()))
        value = choices or _VALUES.get(name, "duration")
        yield row(f"`{name}`", value, WITHOUT[name], _sentence(MEANINGS[name]))


def _promises() -> Iterator[str]:
    for name, key in PROMISES.items():
        yield row(f"`{name}`", key.of, key.meaning)


def _types() -> Iterator[str]:
    physical: dict[str, list[str]] = {}
    for type_, logical in LOGICAL.items():
        physical.setdefault(logical, []).append(f"`{type_}`")
    physical["number"].append("`decimal(P,S)`")
    for logical, types in physical.items():
        rules = [f"`{one}`" for one in sorted(OPTIONS.get(logical, ()))]
        enum = ["`enum`"] if logical == "string" else []
        beside = "; none of these for `binary`" if "`binary`" in types else ""
        yield row(f"`{logical}`", ", ".join(types), (", ".join([*rules, *enum]) or "-") + beside)
    for logical, (type_, inside) in NESTED.items():
        yield row(f"`{logical}`", f"`{type_}`, with `{inside}`", "-")


def _refused() -> Iterator[str]:
    yield f"Inside of `properties`, `items` and `map` a field has {_listed(sorted(INSIDE))} alone."
    yield f"Of a column {_listed(UNENFORCED)} are refused, and `quality` of the object: Twinlake does not"
    yield "enforce them. Properties of a topic are in `customProperties` of the contract itself alone."


def _rest(path: str, node: Node) -> Iterator[str]:
    """The keys of one object that mean nothing to Twinlake."""
    keys = {name: one for name, one in node.keys.items() if not is_read(path, name)}
    if not keys:
        return
    yield f"### {f'`{path}`' if path else 'The contract itself'}\n"
    yield "| key | is | means |"
    yield "|---|---|---|"
    for name, one in keys.items():
        mark = "\\*" if one.is_needed else ""
        meaning = one.meaning or UNSAID[_joined(path, name)]
        yield row(f"`{name}`{mark}", one.described, meaning)
    yield ""


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    *others, last = (f"`{one}`" for one in names)
    return f"{', '.join(others)} and {last}"


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}."
