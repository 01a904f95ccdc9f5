"""Owns records in files, one JSON object a line, as a case has them: over them a change is tried without a
lake."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from twinlake.base.errors import NotFoundError, UsageError, near
from twinlake.base.files import shown_path
from twinlake.unit_tests.source import NULL, TEXT, Part, TestMistake

ENDINGS = (".jsonl", ".ndjson")
"""Of the files that are taken of a folder; before that they have the topic's name."""
BESIDE = ("_offset", "_value")
"""What the view `<topic>_valid` shows and no record of a case says: it is counted, or there again."""


def files_of(given: Iterable[str], topics: Collection[str]) -> dict[str, Path]:
    """By topic the file of its records: `TOPIC=FILE`, a file with the topic's name, or a folder of such ones.
    UsageError where a topic has two, NotFoundError where there is no such file or topic."""
    found: dict[str, Path] = {}
    for text in given:
        name, is_named, place = text.partition("=")
        path = Path(place if is_named else text).expanduser()
        if path.is_dir() and not is_named:
            pairs = [(one.stem, one) for one in sorted(path.iterdir()) if one.suffix in ENDINGS]
        else:
            pairs = [(name if is_named else path.stem, path)]
        if not pairs or not all(file.is_file() for _, file in pairs):
            why = f"there is no file {place or text}" if pairs else f"it has no <topic>{ENDINGS[0]}"
            remedy = "name a file of JSON records, one a line, or a folder of them"
            if is_named and (not place or path.is_dir()):
                why = f"{place} is a folder, and no file" if place else "no file stands after ="
                remedy = "write TOPIC=FILE, or name the folder alone"
            raise NotFoundError(f"no records can be read from {text}", why, remedy)
        for topic, file in pairs:
            if topic not in topics:
                what = f"{shown_path(file)} has records of topic {topic!r}{near(topic, topics)}"
                raise NotFoundError(what, "there is no such topic", "name it like the topic, or TOPIC=FILE")
            if found.setdefault(topic, file) != file:
                what = f"topic {topic} has two files: {shown_path(found[topic])} and {shown_path(file)}"
                raise UsageError(what, "a topic has its records in one", "leave out one of them")
    return found


def records_in(file: Path) -> list[Part]:
    """A part for each line that is not blank; TestMistake for one that is no object of JSON."""
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TestMistake(file, 1, 1, f"it cannot be read: {error}") from error
    return [Part(file, _object(file, number, line)) for number, line in enumerate(lines) if line.strip()]


def without(part: Part, names: Collection[str]) -> Part:
    """The record without these members, and without what no record of a case says."""
    assert isinstance(part.node, yaml.MappingNode)
    left = [(key, value) for key, value in part.node.value if key.value not in (*names, *BESIDE)]
    return replace(part, node=yaml.MappingNode(part.node.tag, left, part.node.start_mark))


def with_null(part: Part, names: Collection[str]) -> Part:
    """The record with NULL for those of these members that it has not."""
    assert isinstance(part.node, yaml.MappingNode)
    mark = part.node.start_mark
    lacking = sorted({*names} - {key.value for key, _ in part.node.value})
    added = [(_scalar(name, mark), yaml.ScalarNode(NULL, "", mark)) for name in lacking]
    return replace(part, node=yaml.MappingNode(part.node.tag, [*part.node.value, *added], mark))


def _object(file: Path, number: int, line: str) -> yaml.Node:
    try:
        found = json.loads(line, object_pairs_hook=_Pairs, parse_float=str, parse_int=str, parse_constant=str)
        if not isinstance(found, _Pairs):
            raise TestMistake(file, number + 1, 1, "it is no object", "write one record a line: {...}")
        return _node(found, _mark(number))
    except json.JSONDecodeError as error:
        raise TestMistake(file, number + 1, error.colno, f"it is not JSON: {error.msg}") from error
    except UnicodeEncodeError as error:
        raise TestMistake(file, number + 1, 1, "a text in it has half a character") from error
    except RecursionError as error:
        raise TestMistake(file, number + 1, 1, "it is nested too deeply") from error


class _Pairs(list[tuple[str, Any]]):
    """The members of an object: a name that is there twice is a mistake, which a dict would hide."""


def _node(value: Any, mark: yaml.Mark) -> yaml.Node:
    """What a test file has of the same value: types are known when it is known what is meant."""
    if isinstance(value, _Pairs):
        pairs = [(_scalar(name, mark), _node(one, mark)) for name, one in value]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, mark)
    if isinstance(value, list):
        return yaml.SequenceNode("tag:yaml.org,2002:seq", [_node(one, mark) for one in value], mark)
    if value is None:
        return yaml.ScalarNode(NULL, "", mark)
    return _scalar(str(value).lower() if isinstance(value, bool) else value, mark)


def _scalar(text: str, mark: yaml.Mark) -> yaml.ScalarNode:
    """UnicodeEncodeError for what no engine can keep."""
    text.encode()
    return yaml.ScalarNode(TEXT, text, mark)


def _mark(line: int) -> yaml.Mark:
    return yaml.Mark("", 0, line, 0, None, 0)
