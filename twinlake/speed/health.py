"""Health: what is known of a version, from memory, as `twinlake status`, gates and plans are answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinlake.base.errors import DamagedError, LostVersionError, TwinlakeError
from twinlake.base.location import Location
from twinlake.lake.catalog.version import Health, Version
from twinlake.speed.lags import Lags
from twinlake.speed.owner import Owner


def is_lost(error: TwinlakeError | None, rows: Location) -> bool:
    """Whether a version whose rows are there can never go on by itself, since this stopped it."""
    if isinstance(error, DamagedError):
        return error.facts["file"].startswith(f"{rows}/")  # damage of its log is not of its own making
    return isinstance(error, LostVersionError)


def of_stored(owner: Owner, lags: Lags, rows: Location, damage: TwinlakeError | None) -> Health:
    """`damage` is that of its files, which may stop readers and jobs long before the next step."""
    version, at, (topic,) = owner.version, owner.standing, owner.version.topics
    paused = owner.paused()
    end, error = lags.end(topic), damage or owner.error
    if paused and error is None:
        error = paused.stalls(version)
    behind = at.position < end.batch
    return Health(
        table=version.table,
        version=version.name,
        position={topic: at.position},
        lag_records=max(0, end.records - at.records) if behind else 0,
        lag_seconds=round(lags.waiting_s(topic, at.position), 3) if behind else 0.0,
        step=at.step,
        segment=at.segment,
        stalled=error is not None,
        lost=is_lost(error, rows),
        error=error.to_json() if error else None,
        watermark=at.watermark,
        paused=paused.to_json() if paused else None,
    )


def of_unreadable(version: Version, error: TwinlakeError, rows: Location) -> Health:
    """A version that could not be opened, or of which something that it reads is gone."""
    return Health(
        table=version.table, version=version.name, position={}, stalled=True, lost=is_lost(error, rows),
        error=error.to_json(),
    )  # fmt: skip


def of_view(version: Version, position: Mapping[str, int], read: Sequence[Health]) -> Health:
    """As far behind as the worst of the versions that it reads; it has no lag of its own."""
    return Health(
        table=version.table,
        version=version.name,
        position=dict(position),
        lag_records=max((one.lag_records or 0 for one in read), default=None),
        lag_seconds=max((one.lag_seconds or 0.0 for one in read), default=None),
        stalled=any(one.stalled for one in read),
        lost=any(one.lost for one in read),
        error=next((one.error for one in read if one.error), None),
        paused=next((one.paused for one in read if one.paused), None),
    )
