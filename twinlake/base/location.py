"""Where a lake is, or something in it: a path of this machine, or a place in a store that others reach, too;
and what a store says of a file without opening it.

A place only: it is `twinlake/lake/storage/store.py` that reads and writes there, the same for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from twinlake.base.errors import UsageError

STORES = ("hdfs",)
"""The schemes of stores that a lake may be in besides `file`."""
FOREIGN = frozenset("%{}[]*?#`")
"""Characters that mean something else to Spark, deltalake or an URI."""


@dataclass(frozen=True, order=True)
class Remote:
    """A place by its URI, without a slash at the end; joined, named and printed like a Path."""

    uri: str

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.uri}/{name}")

    def __str__(self) -> str:
        return self.uri

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    @property
    def parent(self) -> Remote:
        return Remote(self.uri.rpartition("/")[0])

    def with_name(self, name: str) -> Remote:
        return self.parent / name

    @property
    def scheme(self) -> str:
        return urlsplit(self.uri).scheme

    @property
    def store(self) -> str:
        """The store's address: scheme, host and port."""
        scheme, authority, *_ = urlsplit(self.uri)
        return f"{scheme}://{authority}"

    @property
    def path(self) -> str:
        """Within the store, from its root."""
        return urlsplit(self.uri).path


Location: TypeAlias = Path | Remote


def located(text: str) -> Location:
    """The place that an URI (`file:///...`, `hdfs://host:port/...`) or an absolute path names; UsageError for
    one that no lake can be in."""
    scheme, authority, path, *_ = urlsplit(text)
    foreign = {one for one in text if one in FOREIGN or not "!" <= one <= "~"}
    if foreign:
        why = f"{' and '.join(map(repr, sorted(foreign)))} mean something else to Spark, Java or deltalake"
    elif "@" in authority:
        why = "it names a user, and would stand with a password in logs and command lines"
    elif {".", ".."} & set(path.split("/")):
        why = ". and .. are other places to Spark than to a disk"
    elif scheme in ("", "file") and not authority and path.startswith("/") and path.strip("/"):
        return Path(path)
    elif scheme in STORES and authority and path.strip("/"):
        return Remote(f"{scheme}://{authority}/{path.strip('/')}")
    elif scheme in ("", "file"):
        why = "it is not an absolute path of this machine, or its root"
    elif scheme in STORES:
        why = "it names no host, or no folder below the root"
    else:
        why = f"there is no store for {scheme}:// that publishes a file only where there is none"
    raise UsageError(
        f"the lake cannot be in {text}", why,
        f"name a folder, as in file:///srv/lake or {STORES[0]}://namenode:8020/lake",
    )  # fmt: skip


def overlap(one: Location, other: Location) -> bool:
    """Whether they are the same place or one is in the other, by their names: no disk is asked."""
    first, second = (_folder(place) for place in (one, other))
    return first.startswith(second) or second.startswith(first)


def _folder(place: Location) -> str:
    named = normpath(place) if isinstance(place, Path) else place.uri
    return f"{named.rstrip('/')}/"


class Stat(NamedTuple):
    bytes: int
    modified_ns: int
    """By the store's clock, since 1970."""

    @property
    def modified_s(self) -> float:
        return self.modified_ns / 1e9
