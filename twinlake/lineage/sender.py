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


class Sender:
    """Takes events at once and writes them in a thread of its own; that a receiver is away stops nothing.

    Events that no receiver has taken wait in memory, the newest 10,000 of them; all are in the file.
    """

    def __init__(self, file: Path | None, url: str = "", api_key_file: Path | None = None) -> None:
        self.is_on = file is not None or bool(url)
        self._file, self._url, self._api_key_file = file, url, api_key_file
        self._waiting: deque[Any] = deque(maxlen=MOST_WAITING)
        self._changed = threading.Condition()
        self._ending = False
        self._is_away = False
        self._thread = threading.Thread(target=self._work, name="lineage", daemon=True)
        if self.is_on:
            self._thread.start()

    def put(self, event: Any) -> None:
        """To be written and sent."""
        with self._changed:
            self._waiting.append(event)
            self._changed.notify_all()

    def stop(self) -> None:
        """Writes what there is, and waits a moment for what is to be sent."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(LAST_S)

    def _work(self) -> None:
        from openlineage.client.serde import Serde

        lines = None if self._file is None else _lines(self._file)
        receiver = _http(self._url, self._api_key_file) if self._url else None
        unsent: deque[Any] = deque(maxlen=MOST_WAITING)
        while True:
            with self._changed:
                while not self._waiting and not self._ending:
                    self._changed.wait(AGAIN_S if unsent else None)
                    if unsent:
                        break
                new = [*self._waiting]
                self._waiting.clear()
                is_ending = self._ending
            for event in new:
                if lines is not None:
                    lines.emit(logging.makeLogRecord({"msg": Serde.to_json(event)}))
                if receiver is not None:
                    unsent.append(event)
            if receiver is not None:
                self._send(receiver, unsent)
            if is_ending:
                return

    def _send(self, receiver: HttpTransport, unsent: deque[Any]) -> None:
        while unsent:
            try:
                receiver.emit(unsent[0])
            except Exception as error:
                if not self._is_away:
                    journal.warning("the receiver of lineage takes no events", url=self._url,
                                    why=first_lines(error), waiting=len(unsent))  # fmt: skip
                self._is_away = True
                return
            unsent.popleft()
            if self._is_away:
                journal.info("the receiver of lineage takes events again", url=self._url)
            self._is_away = False


def _lines(file: Path) -> RotatingFileHandler:
    file.parent.mkdir(parents=True, exist_ok=True)
    return RotatingFileHandler(file, maxBytes=MOST_BYTES, backupCount=2, encoding="utf-8")


def _http(url: str, api_key_file: Path | None) -> HttpTransport:
    from openlineage.client.transport.http import HttpConfig, HttpTransport, create_token_provider

    given = {} if api_key_file is None else {"type": "api_key", "apiKey": read_secret(api_key_file)}
    return HttpTransport(HttpConfig(
        url=url, timeout=_TIMEOUT_S, auth=create_token_provider(given), retry={"total": 0},
    ))  # fmt: skip
