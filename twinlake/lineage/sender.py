"""Owns where events go: lines of a bounded file, and the address that is set, by OpenLineage's own client."""

from __future__ import annotations

import logging
import threading
from collections import deque
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base.errors import first_lines
from twinlake.base.files import read_secret

if TYPE_CHECKING:
    from openlineage.client.transport.http import HttpTransport

journal = structlog.get_logger(__name__)

MOST_BYTES = 16 << 20
"""Of a file; two that were full before stay beside it."""
MOST_WAITING = 10_000
AGAIN_S = 10.0
LAST_S = 3.0
"""So long the end of the server waits for what is not sent."""
_TIMEOUT_S = 5.0
_REFUSED = (400, 413, 422)
"""What says that one event is not wanted, however often it is sent."""


class Sender:
    """Writes each event into the file at once, and hands it to a thread that sends it: that a receiver is
    away stops nothing. Events that it has not taken wait in memory, the newest 10,000 of them.
    """

    def __init__(self, file: Path | None, url: str = "", api_key_file: Path | None = None) -> None:
        self.is_on = file is not None or bool(url)
        self._file, self._url, self._api_key_file = file, url, api_key_file
        self._lines: RotatingFileHandler | None = None
        self._writing = threading.Lock()
        self._unsent: deque[Any] = deque(maxlen=MOST_WAITING)
        self._changed = threading.Condition()
        self._ending = False
        self._is_away = False
        self._thread = threading.Thread(target=self._work, name="lineage", daemon=True)
        if url:
            self._thread.start()

    def put(self, event: Any) -> None:
        """OSError, or what OpenLineage's client raises, where it cannot be written; it is sent even then."""
        with self._changed:
            if self._url:
                self._unsent.append(event)
            self._changed.notify_all()
        if self._file is not None:
            self._write(self._file, event)

    def stop(self) -> None:
        """Waits a moment for what is to be sent."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(LAST_S)

    def _write(self, file: Path, event: Any) -> None:
        from openlineage.client.serde import Serde

        line = Serde.to_json(event)
        with self._writing:
            if self._lines is None:
                file.parent.mkdir(parents=True, exist_ok=True)
                self._lines = _Lines(file, maxBytes=MOST_BYTES, backupCount=2, encoding="utf-8")
            self._lines.emit(logging.makeLogRecord({"msg": line}))

    def _work(self) -> None:
        receiver: HttpTransport | None = None
        while True:
            with self._changed:
                if not self._ending and (self._is_away or not self._unsent):
                    self._changed.wait(AGAIN_S if self._unsent else None)
                is_ending = self._ending
            try:
                # its key is read again until it has been taken once
                receiver = receiver or _http(self._url, self._api_key_file)
                self._send(receiver, self._unsent)
            except Exception as error:  # a key that cannot be read, or a receiver that refuses
                if not self._is_away:
                    journal.warning("the receiver of lineage takes no events", url=self._url,
                                    why=first_lines(error), waiting=len(self._unsent))  # fmt: skip
                self._is_away, receiver = True, None
            if is_ending:
                return

    def _send(self, receiver: HttpTransport, unsent: deque[Any]) -> None:
        while unsent:
            event = unsent[0]
            try:
                receiver.emit(event)
            except Exception as error:
                if getattr(getattr(error, "response", None), "status_code", 0) not in _REFUSED:
                    raise
                journal.warning("the receiver of lineage refuses an event", url=self._url,
                                why=first_lines(error))  # fmt: skip
            with self._changed:
                if unsent and unsent[0] is event:  # else so many have come meanwhile that it was dropped
                    unsent.popleft()
            if self._is_away:
                journal.info("the receiver of lineage takes events again", url=self._url)
            self._is_away = False


class _Lines(RotatingFileHandler):
    """Raises what keeps a line from being written; `logging` would print it."""

    def handleError(self, record: logging.LogRecord) -> None:
        raise


def _http(url: str, api_key_file: Path | None) -> HttpTransport:
    from openlineage.client.transport.http import HttpConfig, HttpTransport, create_token_provider

    given = {} if api_key_file is None else {"type": "api_key", "apiKey": read_secret(api_key_file)}
    return HttpTransport(HttpConfig(
        url=url, timeout=_TIMEOUT_S, auth=create_token_provider(given), retry={"total": 0},
    ))  # fmt: skip
