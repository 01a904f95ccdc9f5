"""Merging: after a segment was closed, the small ones before it are merged with each other, in one thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import structlog

from twinlake.base.errors import BusyError
from twinlake.base.location import Location
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.version import Version
from twinlake.lake.delta.damages import Damages
from twinlake.lake.delta.read_errors import damage_in
from twinlake.speed.owner import Owner

journal = structlog.get_logger(__name__)


class Merging:
    """`merge(feed, open_segment)` is called under the lock of the version; `prepare` once, in the thread."""

    def __init__(
        self,
        lake: Location,
        merge: Callable[[MaintainedVersion, int], object],
        lock: Callable[[Version], AbstractContextManager[None]],
        damages: Damages,
        prepare: Callable[[], None],
    ) -> None:
        self._lake, self._merge, self._lock, self._damages = lake, merge, lock, damages
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="merge", initializer=prepare)

    def after_close(self, owner: Owner) -> None:
        self._pool.submit(self._merge_small, owner)

    def refuse_more(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def end(self) -> None:
        self._pool.shutdown(wait=True)

    def _merge_small(self, owner: Owner) -> None:
        """Whoever holds the lock now leaves fewer small segments behind anyway."""
        version, said = owner.version, journal.bind(table=owner.version.table, version=owner.version.name)
        try:
            with self._lock(version):
                self._merge(owner.feed(), owner.standing.segment)
        except BusyError:
            said.info("no merge: the batch lock is taken")
        except Exception as error:
            if damage := damage_in(error, self._lake):
                self._damages.note(damage)
            said.exception("the segments were not merged")
