"""Described: what contracts say of tables and topics, as the lake server has read them last.

`<lake>/described.json` has words, `<lake>/classified.json` by view and column a list of classifications,
empty for a column that has none; of a column that is not in it nobody knows. Each is replaced as a whole;
readers look at these, and at nothing of the project itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from twinlake.base.errors import DamagedError
from twinlake.base.location import Location
from twinlake.config.project import Project
from twinlake.lake.storage import store
from twinlake.topics.contract_words import Words, contract_words

WORDS, CLASSES = "described.json", "classified.json"
Classes = Mapping[str, Mapping[str, list[str]]]


def publish(lake: Location, sources: Iterable[Project]) -> None:
    """By the name of its file, what each contract says; the first source that has one counts."""
    files = {file.stem: file for one in reversed([*sources]) for file in sorted(one.contracts.glob("*.yaml"))}
    words = {name: asdict(contract_words(file)) for name, file in sorted(files.items())}
    store.replace_other(lake / WORDS, json.dumps(words, indent=2))


def described(lake: Location) -> Mapping[str, Words]:
    """By the name of a table or topic; nothing before it was first published, or where it is torn: words are
    not worth an error."""
    try:
        found = store.read_json(lake / WORDS)
        return {name: Words(**words) for name, words in found.items()}
    except (FileNotFoundError, DamagedError, ValueError, TypeError, AttributeError):
        return {}


def publish_classes(lake: Location, classes: Classes) -> None:
    store.replace_other(lake / CLASSES, json.dumps(classes, indent=1, sort_keys=True))


def classified(lake: Location) -> Classes:
    """As published last; of nothing where that is torn or not there, so that nothing is taken for public."""
    try:
        found = store.read_json(lake / CLASSES)
    except (FileNotFoundError, DamagedError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def published(lake: Location, file: str = WORDS) -> int | None:
    """When it was replaced last; None before the first time."""
    try:
        return store.stat(lake / file).modified_ns
    except FileNotFoundError:
        return None
