"""Sample records: what a project's `records.py` draws for `twinlake produce`."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from twinlake.base.errors import TwinlakeError, UsageError, raised_at
from twinlake.base.files import shown_path
from twinlake.base.from_source import FromSource, imported_from_source
from twinlake.config.project import Project
from twinlake.topics.topic import Topic


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Some records ready to be sent, in order, and how many of each fault were made."""

    keys: list[bytes]
    values: list[bytes | None]
    faults: dict[str, int] = field(default_factory=dict)


class Source(Protocol):
    """An endless sequence of records."""

    def draw(self, count: int, now_ms: int) -> Draw:
        """The next `count` records, as if they happened around `now_ms`."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which records are asked for. `run` tells two sequences of one seed apart, by their event ids alone."""

    topic: Topic
    seed: int = 1
    run: str = ""
    schemas: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """By the registry's id, the Avro schemas of the topic; none for a topic in JSON."""
    span_ms: int = 0
    """Event times lie anywhere in so many milliseconds before now; 0: a few seconds before."""
    rate: float = 0.0
    """Records a second; 0: as many as the broker takes."""
    faults: bool = False
    """Whether duplicates, invalid and late records are mixed in."""


Sources = Mapping[str, Callable[[Wanted], Source]]


def sources_of(project: Project) -> Sources:
    """By topic what draws its records, as the project's `records.py` says in SOURCES; none without that file.

    UsageError, with file and line, for a file that cannot be imported or says something else.
    """
    file = project.records
    if not file.is_file():
        return {}
    name = f"twinlake_records_of_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    loader = FromSource(name, str(file))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    try:
        with imported_from_source([project.root]):  # what it imports
            loader.exec_module(module)
    except TwinlakeError:
        raise
    except (Exception, SystemExit) as error:
        at, line, _ = raised_at(error, file) or (str(file), 1, None)
        why = str(error.msg) if isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"
        raise _wrong(at, line, why) from error
    found = getattr(module, "SOURCES", None)
    if not isinstance(found, Mapping) or not all(map(callable, found.values())):
        raise _wrong(str(file), 1, "it has no SOURCES, a map of each topic's name to what draws its records")
    return found


def _wrong(file: str, line: int | None, why: str) -> UsageError:
    return UsageError(f"{shown_path(file)}:{line or 1}: no records can be drawn", why, "correct the file")
