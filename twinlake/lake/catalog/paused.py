"""Paused: what stands still because somebody said so, until somebody says otherwise.

`<lake>/paused/<kind>/<name>.json`, one for each topic, table or changelog, replaced as a whole: it holds over
restarts, and in a lake that was restored. Of a torn file the name still says what has to stand still.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from twinlake.base.errors import DamagedError, StalledVersionError
from twinlake.base.location import Location
from twinlake.lake.catalog.version import Version
from twinlake.lake.storage import store

Kind = Literal["topic", "table", "changelog"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def what(kind: str, name: str) -> str:
    """`topic orders`, `changelog of latest_order`."""
    return f"changelog of {name}" if kind == "changelog" else f"{kind} {name}"


@dataclass(frozen=True, kw_only=True)
class Paused:
    """`since` is RFC 3339, UTC. `versions` are those of a table that stand still; all of it where none is
    named."""

    kind: Kind
    name: str
    since: str
    by: str
    reason: str | None = None
    versions: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        return what(self.kind, self.name)

    @property
    def words(self) -> str:
        """`paused since 2026-01-31T12:00:00Z, by anna: the source sends rubbish`."""
        because = f": {self.reason}" if self.reason else ""
        return f"paused since {self.since}, by {self.by}{because}"

    @property
    def resuming(self) -> str:
        return f"`twinlake resume {self.name} --{self.kind}`"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "versions": list(self.versions), "what": self.what, "words": self.words}

    def stalls(self, version: Version) -> StalledVersionError:
        """What those who wait for the version get, and its readers."""
        return StalledVersionError(f"{version} takes no step", f"the table is {self.words}", self.resuming)


class Pauses:
    """The lake server's; may be asked from any thread, at every step: it answers from memory."""

    def __init__(self, lake: Location) -> None:
        self._folder = lake / "paused"
        self._changing = threading.Lock()
        self._known = {(one.kind, one.name): one for one in self._stored()}

    def all(self) -> list[Paused]:
        return [one for _, one in sorted(self._known.copy().items())]

    def of(self, kind: Kind, name: str) -> Paused | None:
        return self._known.get((kind, name))

    def of_version(self, version: Version) -> Paused | None:
        found = self.of("table", version.table)
        return found if found and (not found.versions or version.name in found.versions) else None

    def put(self, paused: Paused) -> None:
        """From now on, and from every later start on."""
        with self._changing:
            store.replace(self._file(paused.kind, paused.name), json.dumps(asdict(paused), indent=2))
            self._known[(paused.kind, paused.name)] = paused

    def drop(self, kind: Kind, name: str) -> None:
        """Twice changes nothing."""
        with self._changing:
            if (kind, name) in self._known:
                store.delete(self._file(kind, name))
                del self._known[(kind, name)]

    def _stored(self) -> Iterator[Paused]:
        for kind in KINDS:
            for file in store.names(self._folder / kind):
                if file.endswith(".json"):
                    yield self._read(kind, file.removesuffix(".json"))

    def _read(self, kind: Kind, name: str) -> Paused:
        try:
            return replace(store.read_as(self._file(kind, name), Paused), kind=kind, name=name)
        except DamagedError as error:
            why = f"{self._file(kind, name)} says no more why ({error})"
            return Paused(kind=kind, name=name, since="a time unknown", by="somebody", reason=why)

    def _file(self, kind: Kind, name: str) -> Location:
        return self._folder / kind / f"{name}.json"
