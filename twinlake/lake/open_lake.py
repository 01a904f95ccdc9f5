"""OpenLake: what is handed to everybody who works on the lake while its server runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from twinlake.base.errors import NotFoundError, TwinlakeError
from twinlake.base.job import Result, Run
from twinlake.base.location import Location
from twinlake.base.times import Clock
from twinlake.config.settings import Settings
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.certificates import Certificates
from twinlake.lake.catalog.maintained_version import Opened, stores_rows
from twinlake.lake.catalog.paused import Pauses
from twinlake.lake.catalog.plans import Plans
from twinlake.lake.catalog.runs import Runs
from twinlake.lake.catalog.segments import Closed
from twinlake.lake.catalog.version import Health, Pin, Version
from twinlake.lake.changelog_request import ChangelogRequest
from twinlake.lake.delta.damages import Damages
from twinlake.lake.log.log import Log
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Held(Protocol):
    """Versions that stand still for somebody."""

    positions: list[dict[str, int]]
    """Where they stand, in the order in which they were named."""

    def renew(self) -> bool:
        """Whether all of them have stood still until now; if so, they do for as long again."""


class LivingVersions(Protocol):
    """The versions that are kept fresh. The speed layer implements it; batch work and releases ask it.

    A version of a view kind has no owner: it is always where its logs are, so nothing waits for it, nothing
    has to hold it, and it has no lock.
    """

    def living(self) -> list[Version]: ...

    def stand_still(self, version: Version, run: Run | None = None) -> dict[str, int]:
        """Where a stored version stands once the step under way is done. Paused, it takes no other."""

    def go_on(self, table: str) -> None:
        """The table is paused no more: its versions catch up."""

    def usable(self) -> list[Version]:
        """The living versions but those that can never go on (`Health.lost`), and what reads such a one."""

    def get(self, table: str, name: str) -> Version:
        """The living version of that name, or NotFoundError."""

    def newest(self, table: str) -> Version | None:
        """The living version of the table that was built last."""

    def start(self, version: Version) -> None:
        """Make a version living: its JSON first, then its table and its feed. Twice changes nothing."""

    def retire(self, version: Version, at: str) -> None:
        """Maintain it no more. Its files stay; BusyError while somebody holds its lock."""

    def opened(self, version: Version) -> Opened:
        """The version ready to be computed or read, or the error that stalls it."""

    def position(self, version: Version) -> dict[str, int]:
        """Where the version is now: by topic, a batch number, which its log has: one that was restored to an
        earlier state may end before a version that had taken more, and nobody could reach that."""

    def pin(self, version: Version, run: Run | None = None) -> Pin:
        """The version between two of its steps: what everybody may read as one state."""

    def pin_together(self, versions: Sequence[Version], run: Run) -> list[Pin]:
        """All versions (of the same topics) at exactly the same position: the log's end, or a later one."""

    def advance_to(self, version: Version, position: Mapping[str, int], run: Run) -> dict[str, int]:
        """Wait until the version, and what it reads, is at the position or beyond; where it is then.

        What is there already is not asked: it may be held, or stalled. StalledVersionError for a version that
        cannot get there.
        """

    def hold(self, versions: Iterable[Version], limit_s: float, run: Run) -> AbstractContextManager[Held]:
        """The versions take no step inside, for as long as the hold is renewed every `limit_s` seconds."""

    def batch_lock(
        self, version: Version, wait_s: float = 0, run: Run | None = None
    ) -> AbstractContextManager[None]:
        """Hold the batch lock of a stored version; BusyError when somebody else holds it all the time."""

    def close_segment(self, version: Version, run: Run | None = None) -> Closed:
        """Close the open segment of a stored version and pin what is closed by it; hold its lock."""

    def open_segment(self, version: Version) -> int:
        """The segment that a stored version appends to now."""

    def health(self) -> list[Health]:
        """What is known of every living version, from memory."""


class RunningIngest(Protocol):
    """A topic's ingest, as far as repairs and replays of its log must know it."""

    error: TwinlakeError | None
    """Why it does not run."""
    replaying: threading.Lock
    """Held by the topic's one replay, and by whoever deletes what a replay asks for."""

    def broker_ends(self) -> dict[int, int]:
        """The offset after the last committed record of each partition, asked of the broker."""

    def behind(self, ends: Mapping[int, int]) -> int:
        """How many offsets below these ends the log has not reached yet."""

    def replay(self, reasons: Sequence[str], run: Run) -> Result:
        """Judges what is in quarantine (for these reasons, for any without them) again, beside the stream."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """Lets the batch under way finish; returns when nothing writes the log any more."""


class RunningTopics(Protocol):
    """The topics that are active, and what makes others so while everything else goes on."""

    def active(self) -> dict[str, Topic]:
        """Those whose logs are open, as ingest works with them."""

    def broken(self) -> list[str]:
        """Those whose files were wrong, or that could not be opened."""

    def put(self, topic: Topic) -> None:
        """Work with the topic as it is here: open its log, or go on with it after the batch under way, which
        is the last by the files of before. What raises leaves the topic as it was."""

    def drop(self, name: str) -> None:
        """Read the topic no more, after the batch under way; its log stays."""


class RunningChangelogs(Protocol):
    """The changelogs that are on, each sent by a thread of its own."""

    def start(self, lake: OpenLake, table: str, asked: ChangelogRequest, run: Run) -> dict[str, Any]:
        """Send the table's changes, or its rows as events, from now on, over every restart; how it is.

        Twice changes nothing. UsageError for a table that has no keys or another changelog, and for a topic
        that is something else.
        """

    def resend(self, lake: OpenLake, table: str) -> dict[str, Any]:
        """Send all events of the table again that its log has. NotFoundError for a table without a changelog,
        UsageError for one of changes, BusyError while nobody knows what was sent."""

    def status(self) -> list[dict[str, Any]]:
        """How each is that is on: its `table`, `topic`, `state` and more."""

    def stand_still(self, table: str, run: Run) -> None:
        """Returns once nothing of a changelog that is paused is sent any more."""

    def stop(self, lake: OpenLake, table: str) -> dict[str, Any]:
        """Send no more; NotFoundError for a table that has none. Started again, it goes on from there."""


class RunningPublications(Protocol):
    """The tables that are published for other engines, each by a thread of its own."""

    def start(self, lake: OpenLake, table: str, run: Run) -> dict[str, Any]:
        """Publish the table from now on, over every restart; how it is. Twice changes nothing.

        UsageError for a table with a column that other engines do not know, and for a lake that is not on a
        disk.
        """

    def status(self) -> list[dict[str, Any]]:
        """How each is that is on: its `table`, `folder`, `state` and more."""

    def stop(self, table: str) -> dict[str, Any]:
        """Publish no more; what is there stays. NotFoundError for a table that is not published."""

    def clean_up(self, lake: OpenLake, table: str | None = None) -> int:
        """Deletes what commits have replaced, of one table or of all; how many commit files went."""


class RunningWebhooks(Protocol):
    """The tables whose changes are posted to an address, each by a thread of its own."""

    def start(
        self, lake: OpenLake, table: str, url: str, begin: Literal["now", "beginning"], run: Run
    ) -> dict[str, Any]:
        """Post the table's changes from now on, over every restart; how it is. Twice changes nothing.

        UsageError for an address that is refused, and for a table that has another one, or no keys.
        """

    def status(self) -> list[dict[str, Any]]:
        """How each is that is on: its `table`, `host`, `state` and more."""

    def stop(self, table: str) -> dict[str, Any]:
        """Post no more; NotFoundError for a table that has none. Started again, it goes on from there."""


@dataclass(frozen=True, kw_only=True)
class OpenLake:
    """The lake, open for writing in the one process that may."""

    settings: Settings
    spark: SparkSession
    logs: Mapping[str, Log]
    ingests: Mapping[str, RunningIngest]
    topics: RunningTopics
    versions: LivingVersions
    certificates: Certificates
    plans: Plans
    runs: Runs
    changelogs: RunningChangelogs
    publications: RunningPublications
    webhooks: RunningWebhooks
    damages: Damages
    clock: Clock
    pauses: Pauses
    aging_error: Callable[[], TwinlakeError | None] = lambda: None
    """Says of a clock that makes records seem older than they are, as long as one is known."""
    ingest_lock: threading.Lock = field(default_factory=threading.Lock)
    """Of those who stop an ingest and start it again: of two at once the second would stop what the first
    has started."""

    @property
    def path(self) -> Location:
        return self.settings.lake

    def tables(self) -> list[Location]:
        """Where the logs and the rows of living versions are."""
        found = [log.path for log in list(self.logs.values())]
        for version in self.versions.living():
            with suppress(TwinlakeError):  # a definition that is not understood any more
                found += [version.path(self.path)] if stores_rows(version) else []
        return found

    def live_version(self, table: str) -> str | None:
        """The name of the version that readers of the table see."""
        found = release_log.live(self.path)
        return found.tables.get(table) if found else None

    def version(self, table: str, name: str | None = None) -> Version:
        """The named version, else the live one of the table, else the one built last; NotFoundError."""
        if name is not None:
            return self.versions.get(table, name)
        live = self.live_version(table)
        version = self.versions.get(table, live) if live else self.versions.newest(table)
        if version is None:
            known = ", ".join(sorted({v.table for v in self.versions.living()})) or "none yet"
            raise NotFoundError(
                f"there is no table {table!r}", f"tables with a living version: {known}", "check the name"
            )
        return version

    def staging(self, job: str) -> Location:
        """Where a job keeps what it has computed but not yet committed."""
        return staging_folder(self.path) / job


def staging_folder(lake: Location) -> Location:
    """Below it one folder a job."""
    return lake / "staging"
