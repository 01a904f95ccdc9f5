"""Tokens: which let a request in, as services.json has them at that moment."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from twinlake.base.errors import TwinlakeError
from twinlake.config.settings import Services

Accepted = Callable[[], Collection[str]]
"""Says at each request which tokens let it in."""


class Tokens:
    """Of the lake server's own services.json; it is read again where it has changed.

    While it cannot be read, those of before hold.
    """

    def __init__(self, file: Path) -> None:
        """UnreachableError where it cannot be read at first."""
        self._file = file
        self._seen = self._mark()
        self._tokens = _of(Services.load(file))

    def __call__(self) -> Collection[str]:
        if (mark := self._mark()) != self._seen:
            try:
                self._tokens = _of(Services.load(self._file))
                self._seen = mark
            except TwinlakeError:  # whoever needs it says so
                pass
        return self._tokens

    def _mark(self) -> tuple[int, ...]:
        try:
            found = self._file.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size


def _of(services: Services) -> tuple[str, ...]:
    """An empty one lets nobody in."""
    return tuple(filter(None, (services.api_token, *services.api_tokens_rotating)))
