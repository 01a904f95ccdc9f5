"""Client of large results: all rows of a statement in batches as they come, whole or an error. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

import httpx

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.config.settings import Services
from twinlake.reading import wire
from twinlake.reading.client import PATIENT, Waiting, again, answered, file_of

if TYPE_CHECKING:
    import pyarrow as pa


class Batches:
    """An iterator of `pyarrow.RecordBatch`, one of about a megabyte in memory at a time.

    When it is through, all rows were there; one that breaks off raises UnreachableError. Whoever stops before
    the end closes it, or uses it in a `with`: the SQL server keeps the rows until then. The server waits for
    300 seconds between two batches. `twinlake.metadata` says what is known of the rows.
    """

    def __init__(self, opened: ExitStack, answer: httpx.Response, remedy: str) -> None:
        import pyarrow as pa

        self._opened, self._remedy, self._given = opened, remedy, 0
        self._is_closed = False
        self._body = file_of(answer, None, wire.EXPORT_SLOW_S)
        self._stream = opened.enter_context(pa.ipc.open_stream(pa.PythonFile(self._body, "r")))
        self.schema: pa.Schema = self._stream.schema
        self.facts = wire.facts_of(self.schema)

    def keep(self, opened: ExitStack) -> None:
        """What is to be closed with it."""
        self._opened = opened

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        import pyarrow as pa

        if self._is_closed:
            if self._given < self.facts["rows"]:
                why = f"{self._given:,} of {self.facts['rows']:,} rows were given by then"
                remedy = "take them inside of the `with`, or ask again"
                raise UsageError("the batches were closed", why, remedy)
            raise StopIteration
        try:
            batch = self._stream.read_next_batch()
        except StopIteration:
            self._end()
            raise
        except (httpx.HTTPError, pa.ArrowInvalid, OSError) as error:
            raise self._broken(error) from error
        except BaseException:
            self.close()
            raise
        self._given += batch.num_rows
        return batch

    def _end(self) -> None:
        try:
            self._body.read()  # without its end it is not whole
        except (httpx.HTTPError, OSError) as error:
            raise self._broken(error) from error
        if self._given < self.facts["rows"]:
            raise self._broken(EOFError("the stream has ended"))
        self.close()

    def _broken(self, error: BaseException) -> UnreachableError:
        self.close()
        return UnreachableError(
            "the answer broke off",
            f"after {self._given:,} of {self.facts['rows']:,} rows: {error or type(error).__name__}; the SQL "
            "server has died, or somebody has cancelled it, or your rights have changed",
            f"these rows are not all; {self._remedy}, then ask again",
        )

    def close(self) -> None:
        """Ends it; the server forgets the rows."""
        self._is_closed = True
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_batches(
    services: Services, sql: str, limit: int | None = None, as_of: str | None = None,
    waiting: Waiting = PATIENT,
) -> Batches:  # fmt: skip
    """All rows, or the first `limit`: computed by then, and waiting at the server."""
    asked = {"sql": sql, "limit": limit, **({} if as_of is None else {"as_of": as_of})}

    def opened() -> Batches:
        with ExitStack() as stack:
            answer = stack.enter_context(
                answered(services, "export", asked, wire.ARROW, waiting.remedy, services.export_seconds)
            )
            made = Batches(stack, answer, waiting.remedy)
            made.keep(stack.pop_all())
        return made

    if not services.sql_url:
        raise UnreachableError(
            "the SQL server is not running", "it has no address", "start it with `twinlake up`"
        )
    return again(services.sql_url, asked, opened, waiting)
