"""Topic facts: what the lake server works with, and what the project's files say now; no record of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from twinlake.base.errors import NotFoundError
from twinlake.lake.catalog.release_log import live
from twinlake.lake.log import topic_views
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.stranded import load_all
from twinlake.server.table_facts import lineage, live_versions
from twinlake.topics.contract_words import contract_words
from twinlake.topics.topic import Topic, contract_file
from twinlake.topics.verdict import ABOVE_MAXIMUM, BELOW_MINIMUM, EMPTY, MISSING, NOT_ALLOWED, TOO_LONG

_RULES = {
    MISSING: "required", EMPTY: "not empty", BELOW_MINIMUM: "at least {}", ABOVE_MAXIMUM: "at most {}",
    TOO_LONG: "at most {} characters", NOT_ALLOWED: "one of {}",
}  # fmt: skip
"""By the code of a record that breaks it."""
FileState = Literal["active", "edited", "new", "removed", "wrong"]


@dataclass(frozen=True, kw_only=True)
class TopicFiles:
    """What a reload would find of a topic: `active` is what the files say, too. `hash` is that of what they
    say; it is empty where they say nothing, or are `wrong` as `why` has it."""

    name: str
    state: FileState
    contract: str | None
    """The version of the active contract."""
    written: str | None
    """The version of the contract in the files."""
    hash: str = ""
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class TopicFacts:
    """`purpose` and what columns mean are the contract's words in the project's file, all else is active."""

    name: str
    files: TopicFiles
    purpose: str
    contract: dict[str, Any]
    columns: list[dict[str, Any]]
    schemas: list[dict[str, Any]]
    """The newest first; of a topic in JSON there is one, made of its contract."""
    views: dict[str, str]
    """The names that readers have for its valid records, its quarantine, and what replays made of that."""
    read_by: tuple[str, ...]
    certificate: dict[str, Any] | None
    """What the other engine has found of its ingest."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def topic_files(lake: OpenLake) -> list[TopicFiles]:
    """Every topic that is active or written, in order of name."""
    active, broken, loaded = lake.topics.active(), lake.topics.broken(), load_all(lake.settings.sources)
    names = sorted({*active, *broken, *loaded.topics, *loaded.refused})
    return [_files(name, active.get(name), loaded.topics.get(name), loaded.refused.get(name))
            for name in names]  # fmt: skip


def topic_facts(lake: OpenLake, name: str) -> TopicFacts:
    """NotFoundError for a topic that is not open."""
    topic = lake.topics.active().get(name)
    if topic is None:
        known = ", ".join(sorted(lake.topics.active())) or "none"
        why = "it could not be opened" if name in lake.topics.broken() else f"topics that are read: {known}"
        raise NotFoundError(f"there is no topic {name!r}", why, "see `twinlake status`")
    words = contract_words(contract_file(name, *lake.settings.sources))
    lives = dict(live_versions(lake, live(lake.path)))
    _, used = lineage(lake, name, lives.values())
    contract, certificate = topic.contract, lake.certificates.topics.newest(name)
    valid, refused, replayed = topic_views.names(name)
    return TopicFacts(
        name=name, files=next(one for one in topic_files(lake) if one.name == name), purpose=words.purpose,
        contract={**contract.to_json(), "file": Path(contract.file).name},
        columns=[
            {
                "name": column, "type": type_, "meaning": words.columns.get(column, ""),
                "rules": list(_rules(topic, column)),
                "used_by": [{"owner": one.owner, "column": one.column} for one in used.get(column, ())],
            }
            for column, type_ in topic.columns
        ],
        schemas=[
            {
                "number": schema.number, "file": Path(schema.file).name, "fingerprint": schema.fingerprint,
                "fields": [
                    {"name": one.name, "type": one.type, "nullable": one.nullable} for one in schema.fields
                ],
            }
            for schema in reversed(topic.schemas)
        ],
        views={"valid": valid, "quarantine": refused, "replayed": replayed},
        read_by=tuple(table for table, one in lives.items() if name in one.topics),
        certificate=certificate.summary() if certificate else None,
    )  # fmt: skip


def _files(name: str, active: Topic | None, written: Topic | None, why: Exception | None) -> TopicFiles:
    state: FileState = "active"
    if why is not None:
        state = "wrong"
    elif written is None:
        state = "removed"
    elif active is None:
        state = "new"
    elif written.to_json() != active.to_json():
        state = "edited"
    said = json.dumps(written.to_json(), sort_keys=True) if written else ""
    return TopicFiles(
        name=name, state=state, contract=active.contract.version if active else None,
        written=written.contract.version if written else None, why=str(why) if why else "",
        hash=hashlib.sha256(said.encode()).hexdigest() if said else "",
    )  # fmt: skip


def _rules(topic: Topic, column: str) -> Iterator[str]:
    """As its contract has them, in words."""
    for rule in topic.contract.rules:
        if rule.column == column:
            value = ", ".join(rule.value) if isinstance(rule.value, tuple) else str(rule.value)
            yield _RULES[rule.code].format(value)
    if topic.contract.unique == column:
        yield "unique"
