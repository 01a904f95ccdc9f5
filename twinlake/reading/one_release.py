"""One release: a query sees all views as one release has them; `java/.../OneRelease` sees to that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NONE = -1


class OneRelease:
    """The follower tells of its switches; a reader asks which release its statement has seen."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._java = jvm.twinlake.reading.OneRelease

    @contextmanager
    def switching(self, release: int) -> Iterator[None]:
        """Queries wait, or are analysed again, until the views are those of this release.

        A switch that fails half way is shown by `/status` and tried again; nobody waits so long.
        """
        self._java.alter()
        try:
            yield
            self._java.serve(release)
        finally:
            self._java.altered()

    def of_last_statement(self) -> int | None:
        """Of this thread's last statement; None before the first release."""
        found: int = self._java.ofLastStatement()
        return None if found == _NONE else found
