"""`twinlake status --disk`: what is on the disk, by topic, table and version, and what could be let go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from twinlake.base.disk import Entry, Walk, room
from twinlake.base.errors import TwinlakeError
from twinlake.base.location import Location
from twinlake.base.times import format_moment, utc_now
from twinlake.cli.output import error_lines, print_json, say, show_rows
from twinlake.config.settings import Settings
from twinlake.releases import disk
from twinlake.releases.disk import Freeable, OfLake, Part
from twinlake.server.release_models import RetireParams
from twinlake.services.folders import folders_of
from twinlake.services.upgrade.kept import Lakes, freed_bytes, kept_lakes

KINDS = {
    "log": "logs of topics", "table": "versions of tables", "staged": "staged by jobs",
    "published": "tables for other engines",
    "lake": "certificates and other small tables of the lake", "kafka": "Kafka", "registry": "the schema "
    "registry", "airflow": "Airflow", "sql": "the SQL server's scratch", "scratch": "Spark's scratch",
    "logs": "logs of services", "kept": "kept of before an upgrade", "history": "the history that the "
    "console plots", "rest": "everything else",
    "backups": "backups", "jars": "jars, of every data directory of this user",
}  # fmt: skip
"""What a part belongs to, as people read it, in the order in which it is shown."""
_OF_HOME = {"registry": "registry", "airflow": "airflow", "sql": "sql", "logs": "logs", "upgrade": "kept"}
_OF_RUN = {"history": "history", "spark": "scratch"}


@dataclass(kw_only=True)
class Place:
    """A folder that is counted for itself. `free_bytes` and `disk_bytes` are of its disk, None where that is
    another machine's; `bytes` is None where it could not be counted."""

    place: str
    path: str
    bytes: int | None = 0
    free_bytes: int | None = None
    disk_bytes: int | None = None
    parts: list[Part] = field(default_factory=list, repr=False)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Each place with its parts, what could be let go, and what could not be read or counted."""

    places: list[Place]
    freeable: list[Freeable]
    unknown: list[TwinlakeError]
    unreadable: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        return {
            "places": [asdict(one) for one in self.places],
            "freeable": [asdict(one) for one in self.freeable],
            "unknown": [one.to_json() for one in self.unknown], "unreadable": self.unreadable,
        }  # fmt: skip


def show_disk(settings: Settings, as_json: bool) -> None:
    """The answer to `--disk`, for people or programs."""
    found = usage(settings)
    if as_json:
        print_json({"home": str(settings.home), "at": format_moment(utc_now()), **found.to_json()})
    else:
        _show(found)


def usage(settings: Settings) -> Usage:
    """Of the data directory, the lake where that is elsewhere, backups in a folder, and jars."""
    walk, lake = Walk(), settings.lake
    kept_of = kept_lakes(Lakes.of(lake)) if isinstance(lake, Path) else []
    elsewhere = [one for one in (lake, settings.jars, *kept_of) if isinstance(one, Path)]
    home = Place(place="data directory", path=str(settings.home))
    home.parts = _of_home(walk.entries(settings.home, elsewhere))
    of_lake = disk.of_lake(lake, walk, RetireParams().keep, utc_now())
    # after the lake: a file that it has, too, is counted there
    of_lake.parts += _summed(("kept", one.name, entry) for one in kept_of for entry in walk.entries(one))
    is_inside = isinstance(lake, Path) and lake.is_relative_to(settings.home)
    places = [home]
    if is_inside:
        home.parts = [*of_lake.parts, *home.parts]
    else:
        places.append(_lake_elsewhere(lake, of_lake))
    unknown = list(of_lake.unknown)
    if backups := settings.values.backup.place:
        places.append(_folder("backups", backups, walk, unknown))
    places.append(_folder("jars", settings.jars, walk, unknown))
    for place in places:
        if place.bytes is not None:
            place.bytes = sum(one.bytes for one in place.parts)
        if (folder := Path(place.path)).is_absolute():
            place.free_bytes, place.disk_bytes = room(folder)
    small = folders_of(settings).upgrade
    if kept_of or small.exists():
        of_lake.freeable.append(_of_upgrade([*kept_of, small]))
    return Usage(places=places, freeable=of_lake.freeable, unknown=unknown, unreadable=dict(walk.unreadable))


def _lake_elsewhere(lake: Location, found: OfLake) -> Place:
    is_counted = bool(found.parts) or not found.unknown
    return Place(place="lake", path=str(lake), parts=found.parts, bytes=0 if is_counted else None)


def _of_upgrade(places: list[Path]) -> Freeable:
    names = tuple(one.name for one in places if one.exists())
    return Freeable(
        by="upgrade", command="twinlake upgrade --done", what=names, bytes=freed_bytes(places), later_bytes=0
    )


def _folder(name: str, place: Location, walk: Walk, unknown: list[TwinlakeError]) -> Place:
    """One that is counted as a whole."""
    if not isinstance(place, Path):
        unknown.append(TwinlakeError(f"how much {name} take is not known", f"they are in {place}", "ask it"))
        return Place(place=name, path=str(place), bytes=None)
    parts = _summed((name, "", one) for one in walk.entries(place))
    return Place(place=name, path=str(place), parts=parts)


def _of_home(entries: Iterable[Entry]) -> list[Part]:
    """Of all but the lake."""
    return _summed((*_owner(one), one) for one in entries)


def _owner(one: Entry) -> tuple[str, str]:
    first, *below = one.path.split("/")
    if first == "kafka":
        return "kafka", _topic(below, one.is_folder)
    if first == "run" and below and below[0] in _OF_RUN:
        return _OF_RUN[below[0]], ""
    return _OF_HOME.get(first, "rest"), ""


def _topic(below: list[str], is_folder: bool) -> str:
    """Of a partition's folder `data/TOPIC-NUMBER`; "" of what is the broker's own."""
    if len(below) < 2 or below[0] != "data" or (len(below) == 2 and not is_folder):
        return ""
    topic, _, number = below[1].rpartition("-")
    return topic if number.isdigit() else ""


def _summed(found: Iterable[tuple[str, str, Entry]]) -> list[Part]:
    parts: dict[tuple[str, str], Part] = defaultdict(lambda: Part(kind="", name=""))
    for kind, name, entry in found:
        part = parts[kind, name]
        part.kind, part.name = kind, name
        part.bytes += entry.bytes
        part.files += not entry.is_folder
    return [parts[key] for key in sorted(parts)]


def _show(found: Usage) -> None:
    for place in found.places:
        if place.bytes is None:
            say(f"{place.place} {place.path}: not known how much")
            continue
        free = "" if place.free_bytes is None else f"; {size(place.free_bytes)} of its disk are free"
        say(f"{place.place} {place.path}: {size(place.bytes)}{free}")
        if len(place.parts) > 1:
            show_rows(("bytes", "files", "what", "", "version", "is", "replaced"), _rows(place.parts))
        say("")
    for one in found.freeable:
        _show_freeable(one)
    for path, why in found.unreadable.items():
        say(("not counted", "yellow"), f": {path} ({why})")
    for error in found.unknown:
        for line in error_lines(error.to_json()):
            say(line)


def _rows(parts: list[Part]) -> Iterator[tuple[str, ...]]:
    by_kind = {kind: [one for one in parts if one.kind == kind] for kind in KINDS}
    for kind, its_parts in by_kind.items():
        if not its_parts:
            continue
        total, files = sum(one.bytes for one in its_parts), sum(one.files for one in its_parts)
        yield size(total), f"{files:,}", KINDS[kind], "", "", "", ""
        if len(its_parts) == 1 and not its_parts[0].name:
            continue
        for one in its_parts:
            name = one.name or "the rest"
            spare = size(one.spare_bytes) if one.spare_bytes else ""
            yield size(one.bytes), f"{one.files:,}", "", name, one.version, _state(one), spare


def _state(one: Part) -> str:
    if one.state != disk.KEPT:
        return one.state
    return f"kept by {'releases' if len(one.releases) > 1 else 'release'} {', '.join(map(str, one.releases))}"


def _show_freeable(one: Freeable) -> None:
    if not one.bytes and not one.later_bytes:
        say(f"{one.by}: there is nothing to let go")
        return
    now = f"{size(one.bytes)} now" if one.bytes else ""
    when = "within six hours" if one.by == disk.CLEAN_UP else "six hours later"
    later = f"{size(one.later_bytes)} {when}" if one.later_bytes else ""
    say((f"`{one.command}`", "bold"), f" frees {' and '.join(filter(None, (now, later)))}: {_few(one.what)}")


def _few(names: tuple[str, ...], many: int = 5) -> str:
    more = f" and {len(names) - many} more" if len(names) > many else ""
    return ", ".join(names[:many]) + more


def size(number: int) -> str:
    """Bytes as people read them, in powers of 1,000, as disks are sold."""
    amount = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"
