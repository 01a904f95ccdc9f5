"""What `/status` shows of topics and live tables; answered from memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from twinlake.base.errors import TwinlakeError
from twinlake.base.location import Location
from twinlake.base.times import format_moment, from_micros
from twinlake.ingest.ingest import STOPPED
from twinlake.ingest.log_end import LogEnd
from twinlake.kinds.all import from_json
from twinlake.kinds.kind import grid_of, is_stored
from twinlake.lake.catalog.certificates import Certificates
from twinlake.lake.catalog.paused import Paused
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import load, version_file
from twinlake.lake.log.log_start import LogStart
from twinlake.lake.open_lake import RunningIngest
from twinlake.server.topic_watch import TopicWatch
from twinlake.topics.verdict import records_in

PAUSED = "paused"


class TopicIngest(RunningIngest, Protocol):
    """What the server shows of a topic's ingest."""

    state: str
    log_end: LogEnd

    def topic_settings(self) -> Mapping[str, str]:
        """The topic's configuration as it is now."""

    def offsets_since(self, micros: int) -> dict[int, int]:
        """By partition, the offset of the first record that Kafka has appended then or later, asked of the
        broker; -1 where there is none."""

    def unreadable(self) -> list[dict[str, Any]]:
        """By schema, the records in quarantine that the newest schema cannot read, and what to do."""


def state_of(ingest: TopicIngest, paused: Paused | None) -> str:
    return PAUSED if paused and ingest.state == STOPPED else ingest.state


def topic_error(
    ingest: TopicIngest, damage: TwinlakeError | None, paused: Paused | None
) -> TwinlakeError | None:
    """`damage` is that of its log. What stopped it before it was paused is tried again when it is resumed."""
    return (None if paused else ingest.error) or damage


def topic_status(
    name: str, ingest: TopicIngest, damage: TwinlakeError | None, watch: TopicWatch | None,
    lag: int | None, paused: Paused | None, start: LogStart | None,
) -> dict[str, Any]:  # fmt: skip
    """`damage` is that of its log, `start` where that starts."""
    end = ingest.log_end
    error = topic_error(ingest, damage, paused)
    return {
        "name": name,
        "state": state_of(ingest, paused),
        "paused": paused.to_json() if paused else None,
        "error": error.to_json() if error else None,
        "batch": end.batch,
        "epoch": end.epoch,
        "ends": {str(partition): offset for partition, offset in end.offsets.items()},
        "records": records_in(end.counts),
        "counts": dict(end.counts),
        "watermark": moment(end.watermark),
        "lag_records": lag,
        "lag_seconds": watch.lag_s if watch else None,
        "newest": moment(max(end.seen.values(), default=None)),
        "warnings": [one.to_json() for one in watch.warnings] if watch else [],
        "unreadable": ingest.unreadable(),
        "deleted": start and {"rows": start.rows, "batch": start.batch, "until": moment(start.until)},
        "lost": [
            {"epoch": epoch, "partition": partition, "from": first, "to": to - 1}
            for epoch, gaps in sorted(end.gaps.items())
            for partition, spans in sorted(gaps.items())
            for first, to in spans
        ],
    }


def broken_status(name: str, error: TwinlakeError, paused: Paused | None) -> dict[str, Any]:
    """A topic that was not opened."""
    unknown = dict.fromkeys((
        "batch", "epoch", "records", "watermark", "lag_records", "lag_seconds", "newest",
    ))  # fmt: skip
    return {
        "name": name, "state": STOPPED, "error": error.to_json(), "ends": {}, "counts": {}, "unreadable": [],
        "deleted": None, "warnings": [], "paused": paused.to_json() if paused else None, **unknown,
    }  # fmt: skip


def certificates_status(certificates: Certificates, live: Release) -> list[dict[str, Any]]:
    """The newest of each live table that has one. What versions say that nobody reads is no news here."""
    newest = (certificates.newest(*version) for version in live.tables.items())
    return [made.summary() for made in newest if made]


def tables_status(lake: Location, live: Release) -> list[dict[str, Any]]:
    """One whose stored definition is no longer understood is among them: work on it fails, and says why."""
    found = []
    for table, version in live.tables.items():
        try:
            found.append(_table(lake, table, version))
        except Exception:
            found.append({"name": table, "version": version, "stored": True, "windows": False})
    return found


@lru_cache(maxsize=1000)
def _table(lake: Location, name: str, version: str) -> dict[str, Any]:
    """What a scheduler must know of a live table; a version never changes."""
    table = from_json(load(version_file(lake, name, version)).definition)
    return {
        "name": name,
        "version": version,
        "stored": is_stored(table),
        "windows": grid_of(table) is not None,
    }


def moment(micros: int | None) -> str | None:
    return None if micros is None else format_moment(from_micros(micros))
