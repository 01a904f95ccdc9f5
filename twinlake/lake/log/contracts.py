"""By which contract, and with which fields, the batches of a topic's log were validated: its eras.

`<lake>/contracts/<topic>.json`, replaced as a whole. A lake of before has no such file: of the batches that
are in its log by then nobody knows it any more.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from twinlake.base.location import Location
from twinlake.lake.storage import store
from twinlake.topics.topic import Topic
from twinlake.witness.ingest.question import Era
from twinlake.witness.question import Field

CORRECTION = 1
"""One more with each correction of ingest that gives records of a kind another verdict, or other fields: what
was validated before stays as it is, and is not held against what is right since."""
_KEPT = 1_000
_NOT_MEANT = ("file", "retention")


def begin(lake: Location, topic: Topic, after: int) -> None:
    """What comes after this batch is validated by the topic's contract; only the lake server says so, before
    the first batch that is. An era after it is of batches that the log has not: they will be others."""
    eras, era = _all(lake, topic.name), _era(topic, after)
    kept = [one for one in eras if one["after"] <= after]
    if kept == eras and eras and {**eras[-1], "after": after} == era:
        return
    kept = [one for one in kept if one["after"] < after]
    store.replace(_file(lake, topic.name), json.dumps([*kept, era][-_KEPT:], indent=1))


def eras(lake: Location, name: str) -> tuple[Era, ...]:
    """In order, those that no correction has come after."""
    found = [one for one in _all(lake, name) if one["correction"] == CORRECTION]
    return tuple(map(Era.from_json, found))


def _era(topic: Topic, after: int) -> dict[str, Any]:
    contract = {name: one for name, one in topic.contract.to_json().items() if name not in _NOT_MEANT}
    fields = [asdict(Field.of(one)) for one in topic.newest.fields]
    made = {"after": after, "correction": CORRECTION, "contract": contract, "fields": fields}
    known: dict[str, Any] = json.loads(json.dumps(made))
    return known


def _all(lake: Location, name: str) -> list[dict[str, Any]]:
    file = _file(lake, name)
    found: list[dict[str, Any]] = store.read_json(file) if store.exists(file) else []
    return found


def _file(lake: Location, name: str) -> Location:
    return lake / "contracts" / f"{name}.json"
