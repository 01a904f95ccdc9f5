"""Compare: blue and green of one table at one position, each read as it was when it was pinned."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twinlake.base.as_json import to_json
from twinlake.base.job import Run
from twinlake.batch.failing_view import readable_side
from twinlake.difference.diff import ColumnDiff, Diff, Differing, Side, diff
from twinlake.difference.pinned import computed_at, side
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog.failing_record import is_of_data
from twinlake.lake.catalog.maintained_version import (
    Computed,
    LogView,
    MaintainedVersion,
    Opened,
    Readable,
    computed_version,
    feeds,
    open_version,
)
from twinlake.lake.catalog.version import Find, Pin, Version
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.comparison import SHOWN, ComparedColumn, ComparedVersion, Comparison, Sample
from twinlake.releases.over_time import folded
from twinlake.speed.advance import standing


def compare(lake: OpenLake, blue: Version, green: Version, run: Run) -> Comparison:
    """Both versions of a table, brought to one position. StalledVersionError if green does not get there.

    A blue one that is stalled is compared where it stands: the release may be what resolves it. One that can
    never go on is taken as the logs make it.
    """
    run.progress(0, 2, "steps", f"bringing both versions of {green.table} to one position")
    if blue not in lake.versions.usable():
        pin = lake.versions.pin(green, run)
        run.progress(1, 2, "steps", f"comparing {green.table} with what {blue} would show", span=1)
        computed = computed_from(lake.logs, blue, lake.versions.get)
        return compare_pinned(computed_at(computed, pin), (lake.versions.opened(green), pin))
    if (stopped := _where_it_stopped(lake, blue)) is not None:
        run.progress(1, 2, "steps", f"comparing {green.table} where {blue} is stalled", span=1)
        return compare_pinned(stopped, computed_at(lake.versions.opened(green), stopped[1]))
    pins = lake.versions.pin_together([blue, green], run)
    run.progress(1, 2, "steps", f"comparing {green.table}", span=1)
    opened = [lake.versions.opened(version) for version in (blue, green)]
    return compare_pinned((opened[0], pins[0]), (opened[1], pins[1]))


def _where_it_stopped(lake: OpenLake, version: Version) -> tuple[Readable, Pin] | None:
    """A stalled version as Delta has it, without its owner; None for one that goes on.

    One that reads a stalled version is taken as the logs make it, up to where that one has come.
    """
    health = {(one.table, one.version): one for one in lake.versions.health() if one.stalled}
    stalled = health.get((version.table, version.name))
    if stalled is None:
        return None
    opened = _without_owner(lake, version)
    if version.reads:
        return computed_at(opened, _where_it_is_read(lake, opened, stalled.position))
    if not isinstance(opened, MaintainedVersion):
        return None
    newest = delta.newest_version(opened.path)
    stands = standing(opened)
    if delta.newest_version(opened.path) != newest:
        return None  # it goes on meanwhile
    return opened, Pin(
        version=version, delta_version=newest, position={opened.topic: stands.position},
        watermarks={opened.topic: stands.watermark}, clocks={opened.topic: stands.clocks},
        step=stands.step, segment=stands.segment,
    )  # fmt: skip


def _where_it_is_read(lake: OpenLake, opened: Opened, position: Mapping[str, int]) -> Pin:
    """The view of a stalled version: as far as the last of those that it reads, and at the watermark there.

    Without that what it shows of the time before the watermark would be nothing at all, on both sides.
    """
    at, watermarks = dict(position), dict[str, int | None]()
    clocks: dict[str, dict[str, int | None]] = {}
    stands = [(feed.topic, standing(feed)) for feed in feeds(opened)]
    for topic, one in sorted(stands, key=lambda found: found[1].position, reverse=True):  # the last one tells
        at[topic], watermarks[topic], clocks[topic] = one.position, one.watermark, one.clocks
    for topic in at.keys() - watermarks.keys():  # it reads the log itself, which stands at its end
        metadata = lake.logs[topic].metadata()
        watermarks[topic], clocks[topic] = metadata.get("watermark"), metadata.get("clocks", {})
    return Pin(version=opened.version, position=at, watermarks=watermarks, clocks=clocks)


def _without_owner(lake: OpenLake, version: Version) -> Opened:
    """The version and what it reads; an owner that is stalled would raise its error."""
    reads = {
        table: _without_owner(lake, lake.versions.get(table, name)) for table, name in version.reads.items()
    }
    return open_version(lake.path, version, lake.logs, reads)


def computed_from(logs: Mapping[str, Log], version: Version, find: Find) -> Computed | LogView:
    """The version, and those that it reads, as these logs alone make them; none of their rows are read."""
    reads = {table: computed_from(logs, find(table, name), find) for table, name in version.reads.items()}
    return computed_version(version, logs, reads)


def _as_it_is(side: Side) -> Side:
    return side


def compare_pinned(
    blue: tuple[Readable, Pin], green: tuple[Readable, Pin], taken: Callable[[Side], Side] = _as_it_is
) -> Comparison:
    """The difference of two pinned versions of one table, of what is `taken` of their sides; the pins must
    be at the same position."""
    (blue_opened, blue_pin), (green_opened, green_pin) = blue, green
    for topic in blue_pin.position.keys() & green_pin.position.keys():
        if blue_pin.position[topic] != green_pin.position[topic]:
            raise ValueError(f"pinned at different positions: {blue_pin.position} and {green_pin.position}")
    old, new = taken(side(blue_opened, blue_pin)), taken(side(green_opened, green_pin))
    raises = None
    try:
        found = _differing(blue_opened, green_opened, old, new)
    except Exception as error:  # the release may be what resolves it
        for one in (old, new):  # what is in memory has all columns: where one raises all of them would
            one.rows.unpersist()
        if not is_of_data(error) or isinstance(blue_opened, MaintainedVersion):
            raise
        if (readable := readable_side(blue_opened, blue_pin)) is None:
            raise
        old, raises = taken(readable[0]), readable[1]
        found = _differing(blue_opened, green_opened, old, new)
    keys = green_opened.definition.view_keys
    no_time = _no_time(blue_opened.definition, old, green_opened.definition, new)
    return Comparison(
        table=green_opened.definition.name,
        blue=ComparedVersion(version=blue_pin.version.name, delta_version=blue_pin.delta_version),
        green=ComparedVersion(version=green_pin.version.name, delta_version=green_pin.delta_version),
        position=green_pin.position,
        keys=keys,
        common=found.common,
        changed=found.changed,
        only_blue=found.only_left,
        only_green=found.only_right,
        columns=tuple(_column(column) for column in found.columns),
        columns_only_blue=tuple(name for name in old.types if name not in new.types),
        columns_only_green=tuple(name for name in new.types if name not in old.types),
        samples=tuple(_sample(row, keys, (tuple(old.types), tuple(new.types))) for row in found.rows),
        over_time=folded(found.over_time) if found.over_time else None,
        no_time="" if found.over_time else no_time,
        blue_raises=raises,
    )


def _differing(blue: Readable, green: Readable, old: Side, new: Side) -> Diff:
    before, after = blue.definition, green.definition
    if before.view_keys != after.view_keys:
        return _disjoint(old, new)
    return diff(
        old, new, after.view_keys, shown=SHOWN, over=_time_of(after, old, new), largest_first=True,
        totals={*before.additive} & {*after.additive},
    )  # fmt: skip


def _time_of(definition: Kind, old: Side, new: Side) -> str | None:
    """The column by which rows of both versions are plotted: the kind's own, or a key that is a time."""
    for name in (definition.time_column, *definition.view_keys):
        if name and {one.types.get(name) for one in (old, new)} <= {"timestamp", "date"}:
            return name
    return None


def _no_time(before: Kind, old: Side, after: Kind, new: Side) -> str:
    if before.view_keys != after.view_keys:
        return "The versions have other keys: no row of one has a partner in the other."
    times = (_time_of(after, new, new), _time_of(before, old, old))
    if name := next((one for one in times if one), ""):
        return f"One version alone says by {name} of which time a row is."
    return "The table has no column that says of which time a row is."


def _disjoint(old: Side, new: Side) -> Diff:
    """Rows with other keys never meet: all there is to say is how many each side has."""
    return Diff(
        common=0, changed=0, only_left=old.rows.count(), only_right=new.rows.count(), columns=(), rows=()
    )


def _column(column: ColumnDiff) -> ComparedColumn:
    blue, green = column.types
    totals = column.totals or (None, None)
    shown = [None if total is None else str(to_json(total)) for total in totals]
    return ComparedColumn(
        name=column.name, type=blue if blue == green else f"{blue} -> {green}", changed=column.changed,
        blue_total=shown[0], green_total=shown[1],
    )  # fmt: skip


def _sample(row: Differing, keys: tuple[str, ...], shown: tuple[tuple[str, ...], tuple[str, ...]]) -> Sample:
    """The row as a person reads it: the columns of each side that are shown, without scales."""
    kind = {"changed": "changed", "only_left": "only_blue", "only_right": "only_green"}[row.sort]
    blue, green = (
        None if side is None else {name: to_json(side[name]) for name in names}
        for side, names in zip((row.left, row.right), shown, strict=True)
    )
    key = {name: to_json(row.known[name]) for name in keys}
    return Sample(kind=kind, key=key, blue=blue, green=green, columns=row.columns)
