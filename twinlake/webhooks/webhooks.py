"""Webhooks: which tables' changes are posted where, in files of the lake, and those who post them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from twinlake.base.address import is_open
from twinlake.base.errors import UsageError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.table_workers import TableWorkers, opened_live
from twinlake.webhooks.deliverer import SET_SECRET, Deliverer

Begin = Literal["now", "beginning"]


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """One that is on: its changes are posted until somebody stops it, by whichever server runs. `begin` says
    where one begins whose address has never had anything."""

    table: str
    url: str
    begin: Begin
    started_at: str


class Webhooks(TableWorkers[Webhook, Deliverer]):
    """Implements `lake.open_lake.RunningWebhooks`, by files in `<lake>/webhooks`; how far each is, is in
    `<lake>/webhooks/positions`, and stays when it is stopped."""

    def __init__(self, lake: Location) -> None:
        super().__init__(lake / "webhooks", Webhook)

    def start(self, lake: OpenLake, table: str, url: str, begin: Begin, run: Run) -> dict[str, Any]:
        with self._lock:
            on = {one.table: one for one in self._on()}
            if table in on and on[table].url != url:
                raise UsageError(
                    f"the changes of {table} are posted already", "a table has one webhook at most",
                    f"end it with `twinlake webhook {table} --stop`",
                )  # fmt: skip
            if table not in on:
                _refuse(lake, table, url)
                now = lake.clock().isoformat()
                self._put(lake, Webhook(table=table, url=url, begin=begin, started_at=now))
            return self._workers[table].status()

    def stop(self, table: str) -> dict[str, Any]:
        with self._lock:
            return self._drop(self._worker(table, f"table {table} has no webhook"))

    def _made(self, lake: OpenLake, one: Webhook) -> Deliverer:
        return Deliverer(lake, one.table, one.url, one.begin, self._folder / "positions")


def _refuse(lake: OpenLake, table: str, url: str) -> None:
    """UsageError for what can be known to be wrong before anything is posted."""
    parts = urlsplit(url)
    try:
        is_one = bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port is so great
        is_one = False
    if not is_one:
        raise UsageError("the address was refused", "it has no host, or no port that there is", "correct it")
    if parts.username or parts.password or parts.fragment:
        raise UsageError(
            "the address was refused", "it has a login or a fragment in it",
            "the receiver knows who posts by the signature; name an address without them",
        )  # fmt: skip
    if is_open(url):
        raise UsageError(
            "the address was refused", "rows would be readable on the way",
            "name an https:// address; http:// is for this machine alone",
        )  # fmt: skip
    if lake.settings.values.webhooks.secret_file is None:
        raise UsageError(
            "nothing is posted without a signature", "the settings name no secret to sign with",
            SET_SECRET,
        )  # fmt: skip
    if not opened_live(lake, table).definition.view_keys:
        raise UsageError(
            f"table {table} has no keys", "nobody can tell which of its rows has changed",
            "define a table with keys over it (a Latest, an Aggregate)",
        )  # fmt: skip
