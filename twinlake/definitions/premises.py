"""Premises: the name of everything that an analysis of a definition rests on. It costs no Spark.

Under equal premises Spark would say the same of a definition again: its problems, columns, fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from twinlake.base.version import VERSION
from twinlake.kinds import plugins
from twinlake.kinds.dependencies import upstream_topics
from twinlake.kinds.kind import Kind
from twinlake.topics.topic import Topic

T = TypeVar("T")
MOST = 2_000
"""So many findings are kept."""
_CODE = Path(__file__).parents[1]


def premises(
    kind: Kind,
    topics: Mapping[str, Topic],
    tables: Mapping[str, Kind],
    upstream: Mapping[str, str],
    session: Mapping[str, str],
) -> str:
    """sha256 over the definition, its topics' columns and contracts, the premises of what it reads
    (`upstream`), the versions of Twinlake, of packages with kinds of theirs, of Spark and Delta, and the
    session's settings.

    `tables` are the definitions that it reads.
    """
    meaning = {
        "definition": kind.to_json(),
        "topics": {name: of_topic(topics[name]) for name in upstream_topics(kind, tables)},
        "reads": {name: upstream[name] for name in kind.reads},
        "code": [code(), *engine(), *plugins.versions()],
        "session": dict(session),
    }
    return hashed(meaning)


def hashed(meaning: Any) -> str:
    """The name of data that JSON can hold."""
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


def newest(known: Mapping[str, T], found: Mapping[str, T]) -> dict[str, T]:
    """What is kept by premises: both, what was found as the newest; of too many the oldest go."""
    left = {premises: kept for premises, kept in known.items() if premises not in found}
    return dict([*left.items(), *found.items()][-MOST:])


def of_topic(topic: Topic) -> list[Any]:
    """All of a topic's files that can change what is said of its records, as JSON has it."""
    return [topic.contract.meaning(), topic.columns, [schema.fingerprint for schema in topic.schemas]]


@cache
def engine() -> tuple[str, str]:
    """The versions of Spark and Delta; where they are not installed, nothing is analysed by them."""
    try:
        return version("pyspark"), version("delta-spark")
    except PackageNotFoundError:
        return "", ""


@cache
def code() -> str:
    """Twinlake's version and the very text of it: while it is developed, its version stays the same."""
    found = hashlib.sha256(VERSION.encode())
    for path in sorted(_CODE.rglob("*.py")):
        found.update(f"{path.relative_to(_CODE)}\n".encode() + path.read_bytes())
    return found.hexdigest()
