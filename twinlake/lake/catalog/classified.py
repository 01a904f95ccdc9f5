"""Classified: which classifications of contracts hold for each column of readers' views.

`<lake>/classified.json`, replaced as a whole by the lake server: by view and column a list of
classifications, empty for a column that has none. Of a column that is not in it nobody knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from twinlake.base.errors import DamagedError
from twinlake.base.location import Location
from twinlake.lake.storage import store

_FILE = "classified.json"
Classes = Mapping[str, Mapping[str, list[str]]]


def publish(lake: Location, classes: Classes) -> None:
    """Replaces what is there, where it is another."""
    text = json.dumps(classes, indent=1, sort_keys=True)
    if not store.exists(lake / _FILE) or store.read(lake / _FILE) != text.encode():
        store.replace(lake / _FILE, text)


def classified(lake: Location) -> Classes:
    """As published last; of nothing where that is torn or not there, so that nothing is taken for public."""
    try:
        found = store.read_json(lake / _FILE)
    except (FileNotFoundError, DamagedError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def published(lake: Location) -> int | None:
    """When it was replaced last; None before the first time."""
    try:
        return store.stat(lake / _FILE).modified_ns
    except FileNotFoundError:
        return None
