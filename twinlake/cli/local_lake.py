"""What commands read of a lake's own files on this machine, whether or not its server runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from twinlake.base.errors import TwinlakeError, UnreachableError
from twinlake.base.location import Location
from twinlake.config.settings import Settings
from twinlake.kinds.kind import Kind
from twinlake.lake import formats
from twinlake.lake.storage import store


def refuse_unreadable(settings: Settings) -> None:
    """UnreachableError where there is no lake yet, or one that this code cannot read."""
    if not store.exists(settings.lake):
        raise UnreachableError(
            f"there is no lake in {settings.home}", "Twinlake was never started there",
            "start it with `twinlake up`, or name another folder with --home",
        )  # fmt: skip
    formats.refuse_other(settings.lake)


def log_files(lake: Location, topic: str) -> list[str]:
    """The data files of a topic's log; none where there is no such log, or the lake is in a store."""
    if not isinstance(lake, Path) or not (lake / "logs" / topic).exists():
        return []
    from twinlake.lake.delta.table_state import TableState
    from twinlake.lake.log.log import log_path

    path = log_path(lake, topic)
    return [str(path / unquote(file)) for file in TableState(path, appends=False).files]


def live_definitions(lake: Location, table: str) -> tuple[int, Mapping[str, Kind]]:
    """The number of the live release, and its definitions, each bound. TwinlakeError says why there is
    nothing to compare with."""
    if not isinstance(lake, Path):
        why = "its files are not on this machine"
        raise TwinlakeError("the lake is in a store", why, "see `twinlake diff`")
    if not (lake / "releases").exists():
        raise TwinlakeError("there is no lake here with a release", f"{lake} has none", "see `twinlake up`")
    from twinlake.kinds.all import from_json
    from twinlake.kinds.dependencies import ordered
    from twinlake.lake.catalog import release_log
    from twinlake.lake.catalog.version import load, version_file

    release = release_log.live(lake)
    if release is None or table not in release.tables:
        raise TwinlakeError(f"{table} has no live version", "it was not released", "see `twinlake plan`")
    files = (version_file(lake, one, name) for one, name in release.tables.items())
    found = [from_json(load(file).definition) for file in files]
    return release.number, {one.name: one for one in ordered(found)}
