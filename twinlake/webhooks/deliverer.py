"""Deliverer: the one thread that posts a table's changes, from position to position of whatever is live.

At least once, and in order: nothing is posted before all before it is accepted. What has happened meanwhile
goes out together.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import BusyError, TwinlakeError, first_lines
from twinlake.base.files import read_secret
from twinlake.base.location import Location
from twinlake.base.post import post
from twinlake.base.times import format_moment
from twinlake.difference.changed import all_rows, changed_rows, gone_and_there, rest_s, without_scales
from twinlake.difference.touched import is_known, is_readable
from twinlake.lake.catalog.maintained_version import Opened
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.table_workers import TableWorker
from twinlake.reading.answer import Answer, Answers
from twinlake.reading.changes.position import EVERYTHING, position_of
from twinlake.webhooks.posted import Place, Posted, load, place_of, save

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIGNATURE = "Twinlake-Signature"
MOST_ROWS = 1_000
"""In one part of a change."""
MOST_BYTES, KEPT_FREE = 4 << 30, 1 << 30
WHOLE = "all rows"
SET_SECRET = (
    "set secret_file in [webhooks] of the data directory's twinlake.toml, then `twinlake down` and "
    "`twinlake up`: a lake server that the supervisor starts again has the settings of before"
)


class Deliverer(TableWorker):
    """Implements `table_workers.TableWorker`: what was not accepted is tried again, ever more rarely."""

    def __init__(
        self, lake: OpenLake, table: str, url: str, begin: Literal["now", "beginning"], folder: Location
    ) -> None:
        self._host = urlsplit(url).hostname or ""
        super().__init__(lake, table, "webhook", host=self._host)
        self._url, self._begin, self._folder = url, begin, folder
        self._answers = Answers(lake.spark, MOST_BYTES, 2 * MOST_BYTES, pool="webhooks", kept_free=KEPT_FREE)
        self._posted: Posted | None = None
        self._sure: Place | None = None
        self._rows, self._way, self._sent_at, self._tries = 0, "", "", 0
        self._rest_until = 0.0  # on the monotonic clock

    def status(self) -> dict[str, Any]:
        posted, error = self._posted, self.error
        sent = posted.sent if posted else None
        return {
            "table": self.table,
            "host": self._host,
            "state": "failing" if error else "sending" if sent else "starting",
            "release": sent.release if sent else None,
            "version": sent.pin["version"] if sent else None,
            "position": dict(sent.pin["position"]) if sent else {},
            "rows": self._rows,
            "way": self._way,
            "sent_at": self._sent_at,
            "tries": self._tries,
            "error": error.to_json() if error else None,
        }

    def _fail(self, error: Exception) -> None:
        self._tries += 1
        self._journal.error("the webhook is not delivered", exc_info=error)
        known = damage_in(error, self._lake.path) or error
        what = known.what if isinstance(known, TwinlakeError) else first_lines(error)
        why = known.why if isinstance(known, TwinlakeError) else ""
        self.error = TwinlakeError(
            f"the changes of {self.table} are not delivered", f"{what}{': ' if why else ''}{why}",
            "see to the receiver; it is tried again by itself, ever more rarely, and nothing is left out",
        )  # fmt: skip

    def _forget(self) -> None:
        """What is known is what the file says."""

    def _look(self) -> None:
        live, version = self._live()
        posted = self._posted = self._posted or load(self._folder, self.table, self._url)
        if posted.next is None:
            at = live.number, self._lake.versions.position(version)
            sent = posted.sent
            if sent and (sent.release, sent.pin["position"]) == at and self._is_of_this_lake(sent):
                return
            if time.monotonic() < self._rest_until:
                return
            pin = self._lake.versions.pin(version, self._run)
            posted = self._begun(posted, place_of(live.number, pin))
        if posted.next is not None:
            self._deliver(posted, posted.next)

    def _is_of_this_lake(self, sent: Place) -> bool:
        """One that was restored and has read on may be at the same batch with other records."""
        if self._sure != sent:
            pin = sent.pinned(self.table, self._lake.versions.get)
            before = self._opened(pin)
            if pin is None or before is None or not is_known(before, pin):
                return False
            self._sure = sent
        return True

    def _begun(self, posted: Posted, to: Place) -> Posted:
        """What goes out next is known before any of it goes out."""
        _refuse_back(self.table, posted.sent, to)
        if posted.sent is None and self._begin == "now" and not posted.next_whole:
            return self._note(Posted(url=posted.url, sent=to))
        if posted.sent == to:
            return posted
        return self._note(posted.begins(to, posted.sent is None))

    def _note(self, posted: Posted) -> Posted:
        save(self._folder, self.table, posted)
        self._posted = posted
        return posted

    def _deliver(self, posted: Posted, to: Place) -> None:
        began = time.monotonic()
        pin = to.pinned(self.table, self._lake.versions.get)
        opened = self._opened(pin)
        if pin is None or opened is None or not is_readable(opened, pin):  # it was on its way for too long
            self._note(Posted(url=posted.url, next_whole=True))
            return
        way, answer = self._found(posted, opened, pin)
        try:
            self._rows = self._post_all(to, pin, opened, answer, way == WHOLE)
        finally:
            answer.close()
        breakpoints.at(Point.BEFORE_POSTED, self.table)
        self._note(Posted(url=posted.url, sent=to))
        self._way, self._tries = way, 0
        self._sent_at = format_moment(self._lake.clock())
        ended = time.monotonic()
        self._rest_until = ended + rest_s(opened, way, ended - began)

    def _found(self, posted: Posted, opened: Opened, pin: Pin) -> tuple[str, Answer]:
        keys, sent = opened.definition.view_keys, None if posted.next_whole else posted.sent
        old = sent.pinned(self.table, self._lake.versions.get) if sent else None
        before, changed = self._opened(old), None
        if before and before.definition.view_keys == keys:
            changed = changed_rows(before, old, opened, pin)
        rows = changed.rows if changed else all_rows(opened, pin)
        shown = (opened.definition.timeless, before.definition.timeless if before else ())
        changes = _ordered(gone_and_there(without_scales(rows, *shown), keys), keys)
        return changed.way if changed else WHOLE, self._answers.of(changes, None)

    def _opened(self, pin: Pin | None) -> Opened | None:
        """None for a stalled one, which nobody can wait for."""
        try:
            return self._lake.versions.opened(pin.version) if pin else None
        except TwinlakeError:
            return None

    def _post_all(self, to: Place, pin: Pin, opened: Opened, answer: Answer, is_whole: bool) -> int:
        """All parts, each once that before it is accepted; how many rows and keys those were."""
        secret_file = self._lake.settings.values.webhooks.secret_file
        if secret_file is None:
            why = "[webhooks] names no secret_file"
            raise BusyError("nothing is posted without a signature", why, SET_SECRET)
        secret, count = read_secret(secret_file).encode(), 0
        position = position_of(self.table, to.release, pin).of(EVERYTHING).text
        # what was a difference before a kill may have to be the whole after it
        key = f"{position}/whole" if is_whole else position
        for part, (rows, gone, more) in enumerate(_parts(answer), start=1):
            if self._run.cancelled.is_set():
                raise BusyError("the webhook was stopped", "", "")
            said = {
                "table": self.table, "key": opened.definition.view_keys, "whole": is_whole, "part": part,
                "upserts": rows, "deletes": gone, "more": more, "release": to.release,
                "position": pin.position, "id": position,
            }  # fmt: skip
            body = json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
            at = str(int(self._lake.clock().timestamp()))
            post(self._url, body, {
                "Content-Type": "application/json", "Idempotency-Key": f"{key}/{part}",
                SIGNATURE: f"t={at},v1={signature(secret, at, body)}",
            }, "the webhook")  # fmt: skip
            count += len(rows) + len(gone)
        return count


def signature(secret: bytes, at: str, body: bytes) -> str:
    """What a receiver that knows the secret computes, too: of the time in seconds, a dot and the body."""
    return hmac.new(secret, at.encode() + b"." + body, hashlib.sha256).hexdigest()


def _parts(answer: Answer) -> Iterator[tuple[list[Any], list[Any], bool]]:
    """Rows, keys, and whether more parts follow; one part at least."""
    rows, gone = list[Any](), list[Any]()
    for piece in answer.rows():
        for one in piece:
            if len(rows) + len(gone) >= MOST_ROWS:
                yield rows, gone, True
                rows, gone = [], []
            if one["row"] is None:
                gone.append(one["gone"])
            else:
                rows.append(one["row"])
    yield rows, gone, False


def _ordered(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """In the same order every time: a part that goes out again is the same."""
    from pyspark.sql import functions as F

    return changes.orderBy(
        *(F.coalesce(F.col("row").getField(key), F.col("gone").getField(key)) for key in keys)
    )


def _refuse_back(table: str, sent: Place | None, to: Place) -> None:
    """A receiver that has had a position, or a release, never gets an earlier one."""
    had = sent.pin["position"] if sent else {}
    behind = [topic for topic, batch in to.pin["position"].items() if batch < had.get(topic, 0)]
    if sent and (to.release < sent.release or behind):
        raise BusyError(
            f"{table} is behind what was posted", f"release {sent.release} at {had} was accepted already",
            "nothing, if it catches up; if the lake was restored to an earlier state: stop the webhook, and "
            "start one to another address",
        )  # fmt: skip
