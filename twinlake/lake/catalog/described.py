"""Described: what contracts say in words of tables and topics, as the lake server has read them last.

`<lake>/described.json`, replaced as a whole; readers look at this, and at nothing of the project itself.
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

_FILE = "described.json"


def publish(lake: Location, sources: Iterable[Project]) -> None:
    """By the name of its file, what each contract says; the first source that has one counts."""
    files = {file.stem: file for one in reversed([*sources]) for file in sorted(one.contracts.glob("*.yaml"))}
    words = {name: asdict(contract_words(file)) for name, file in sorted(files.items())}
    text = json.dumps(words, indent=2)
    if not store.exists(lake / _FILE) or store.read(lake / _FILE) != text.encode():
        store.replace(lake / _FILE, text)


def described(lake: Location) -> Mapping[str, Words]:
    """By the name of a table or topic; nothing before it was first published, or where it is torn: words are
    not worth an error."""
    try:
        found = store.read_json(lake / _FILE)
        return {name: Words(**words) for name, words in found.items()}
    except (FileNotFoundError, DamagedError, ValueError, TypeError, AttributeError):
        return {}


def published(lake: Location) -> int | None:
    """When it was replaced last; None before the first time."""
    try:
        return store.stat(lake / _FILE).modified_ns
    except FileNotFoundError:
        return None
