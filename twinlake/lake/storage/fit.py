"""Fit: whether a store is one that a lake may be in, tried out at each start of a lake server."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from twinlake.base.errors import FullDiskError, UnreachableError, UsageError
from twinlake.base.location import Location
from twinlake.lake.storage import store

CLOCKS_APART_S = 120.0
"""The store's clock says what is old enough to be deleted, this machine's what is in use."""


def check_store(lake: Location, now: datetime) -> None:
    """UsageError of a store where one name can be taken twice, or whose clock is minutes from `now`;
    UnreachableError of one that does not answer, or lets nobody write."""
    probe = lake / f".probe-{uuid4()}"
    try:
        store.make_folder(lake)
        try:
            first, second = store.put_if_absent(probe, "first"), store.put_if_absent(probe, "second")
            found, modified_s = store.read_text(probe), store.stat(probe).modified_s
        finally:
            store.delete(probe)
    except FullDiskError:
        raise
    except OSError as error:
        if full := store.no_room(lake, error):
            raise full from error
        raise UnreachableError(
            f"the lake {lake} cannot be written", str(error)[:500],
            "start the store, and give this user the right to write, read, list and delete there; on a disk "
            "of this machine the file system must know hard links",
        ) from error  # fmt: skip
    if (first, second, found) != (True, False, "first"):
        raise UsageError(
            f"the lake cannot be in {lake}",
            "the store has published one name twice, so a commit could be lost without a word",
            "use a store, or a setting of it, that publishes a file only where there is none",
        )
    apart_s = modified_s - now.timestamp()
    if abs(apart_s) > CLOCKS_APART_S:
        raise UsageError(
            f"the clock of the lake's store is {abs(apart_s):.0f} s {'ahead' if apart_s > 0 else 'behind'}",
            f"it says when files of {lake} were written, and by that clean-up tells what may be deleted",
            "set the clocks of this machine and of the store by one time server",
        )
