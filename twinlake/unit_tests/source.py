"""Owns the text of a test file: YAML whose every part knows its line and column.

Scalars stay texts until it is known what type is meant: YAML alone would read 12:30 as 750, NO as false, and
10.50 as a double.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from twinlake.base.errors import UsageError, near
from twinlake.base.files import shown_path

NULL, TEXT, _BINARY = "tag:yaml.org,2002:null", "tag:yaml.org,2002:str", "tag:yaml.org,2002:binary"
_KINDS = {yaml.ScalarNode: "a value", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}


class TestMistake(UsageError):
    """A test file is wrong at one place."""

    __test__ = False  # pytest would take it for a test

    def __init__(self, file: Path, line: int, column: int, why: str, remedy: str = "") -> None:
        self.line = line
        name = shown_path(file)
        facts = {"file": str(file), "line": str(line), "column": str(column), "why": why}
        super().__init__(f"{name}:{line}:{column}: {why}", "", remedy, facts)


@dataclass(frozen=True)
class Part:
    """A value, list or mapping of a file."""

    file: Path
    node: yaml.Node

    @property
    def line(self) -> int:
        return int(self.node.start_mark.line) + 1

    @property
    def column(self) -> int:
        return int(self.node.start_mark.column) + 1

    def wrong(self, why: str, remedy: str = "") -> TestMistake:
        """An error at this place."""
        return TestMistake(self.file, self.line, self.column, why, remedy)

    @property
    def is_null(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == NULL

    @property
    def is_scalar(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_binary(self) -> bool:
        return self.node.tag == _BINARY

    def text(self, what: str = "it") -> str:
        """A scalar as it is written."""
        if not isinstance(self.node, yaml.ScalarNode) or self.is_null:
            raise self.wrong(f"{what} is {self.kind}, not a text")
        return str(self.node.value)

    def items(self, what: str = "it") -> list[Part]:
        """The parts of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong(f"{what} is {self.kind}, not a list", "begin each part with `- `")
        return [Part(self.file, node) for node in self.node.value]

    def mapping(self, what: str = "it") -> dict[str, Entry]:
        """The entries of a mapping by their keys; a key that is given twice is a mistake."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong(f"{what} is {self.kind}, not a mapping", "write `name: value`")
        found: dict[str, Entry] = {}
        for key_node, value_node in self.node.value:
            key = Part(self.file, key_node)
            name = key.text("a key")
            if name in found:
                raise key.wrong(f"{name!r} is given twice")
            found[name] = Entry(self.file, value_node, key)
        return found

    def known(self, names: Iterable[str], what: str) -> dict[str, Entry]:
        """The entries of a mapping that has no other keys than these; `what` has them."""
        names = tuple(names)
        found = self.mapping(what)
        for name, entry in found.items():
            if name not in names:
                raise entry.key.wrong(f"{what} has no {name!r}{near(name, names)}")
        return found

    @property
    def kind(self) -> str:
        return "empty" if self.is_null else _KINDS[type(self.node)]


@dataclass(frozen=True)
class Entry(Part):
    """A value of a mapping, which knows its key."""

    key: Part


class _Alias(yaml.MarkedYAMLError):
    """What YAML allows and a test does not."""


class _Loader(yaml.SafeLoader):
    """Without aliases: a few lines of them stand for more records than there is memory."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.get_event()  # type: ignore[no-untyped-call]
            problem = f"*{event.anchor} is an alias, write its value again"
            raise _Alias(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)


def read(file: Path) -> Part:
    """The file's document; TestMistake for one that is no YAML, or has tags, aliases or several documents."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        # the problem alone may say as little as "second occurrence"
        said = [getattr(error, "context", None), getattr(error, "problem", None)]
        why = ", ".join(filter(None, said)) or str(error)
        what = "" if isinstance(error, _Alias) else "it is not YAML: "
        raise TestMistake(file, line, column, f"{what}{why}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TestMistake(file, 1, 1, f"it cannot be read: {error}") from error
    if node is None:
        raise TestMistake(file, 1, 1, "it is empty", "write a case: docs/unit-tests.md")
    root = Part(file, node)
    for part in _each(root, set()):
        tag = part.node.tag
        if not tag.startswith("tag:yaml.org,2002:"):
            raise part.wrong(f"{tag} is a tag, which says nothing here", "leave it out")
    return root


def _each(part: Part, seen: set[int]) -> Iterator[Part]:
    """Every part once, those that an alias names again too."""
    if id(part.node) in seen:
        return
    seen.add(id(part.node))
    yield part
    if isinstance(part.node, yaml.SequenceNode):
        for one in part.items():
            yield from _each(one, seen)
    elif isinstance(part.node, yaml.MappingNode):
        for key, value in part.node.value:
            for node in (key, value):
                yield from _each(Part(part.file, node), seen)
