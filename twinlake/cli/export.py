"""`twinlake query --format`: all rows into a file, which is there once it is whole, or to a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from twinlake.base.errors import UsageError
from twinlake.base.files import shown_path
from twinlake.base.whole_file import refuse, whole_file
from twinlake.cli.output import console, tell
from twinlake.cli.progress import bar_of, working
from twinlake.config.settings import Services
from twinlake.reading.client import Waiting

if TYPE_CHECKING:
    import pyarrow as pa

    from twinlake.reading.export_client import Batches

NAMES = ("parquet", "arrow", "csv", "tsv", "json", "ndjson")
TABLE = "table"
"""As a person reads it: no format of a file."""


def format_of(given: str | None, output: Path | None) -> str | None:
    """The name of the format, that is given or that the file ends with; None where neither is there, and for
    a table."""
    if given is not None:
        name = given.lower()
        if name == TABLE and output is None:
            return None
    elif output is None:
        return None
    else:
        name = output.suffix.removeprefix(".").lower()
    if name in NAMES:
        return name
    which = f"{given!r} is none of them" if given is not None else f"{output} does not end like one of them"
    known = NAMES if output else (*NAMES, TABLE)
    raise UsageError("there is no such format", which, f"give --format {', '.join(known)}")


def export(
    services: Services, sql: str, name: str, output: Path | None, replaces: bool, limit: int | None,
    as_of: str | None, waiting: Waiting,
) -> dict[str, Any]:  # fmt: skip
    """Writes all rows, or the first `limit`, and returns what is known of them. Before anything is asked it
    raises UsageError for a file that cannot be, and for a terminal that would be shown bytes."""
    from twinlake.reading.export_client import open_batches
    from twinlake.reading.file_formats import FORMATS

    form = FORMATS[name]
    write = form.write if output else form.pipe
    if output is not None:
        refuse(output, replaces)
    elif write is None:
        raise UsageError(f"{name} needs a file", "it cannot be written to a pipe", "name one with --output")
    elif not form.is_text and sys.stdout.isatty():
        raise UsageError(
            f"{name} is not text", "stdout is a terminal", "name a file with --output, or pipe it elsewhere"
        )
    assert write is not None
    with working("the SQL server computes all rows"):  # none is there before the last one
        batches = open_batches(services, sql, limit, as_of, waiting)
    with batches, _target(output, replaces) as file, _shown(batches) as shown:
        write(batches.schema, shown, file)
    facts = batches.facts
    count = facts["rows"]
    released = f", release {facts['release']}" if facts["release"] is not None else ""
    where = f" in {shown_path(output)} ({output.stat().st_size:,} bytes)" if output else ""
    tell(f"{count:,} row{'' if count == 1 else 's'}{where}{released}")
    return facts


@contextmanager
def _target(output: Path | None, replaces: bool) -> Iterator[IO[bytes]]:
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with whole_file(output, replaces) as file:
            yield file


@contextmanager
def _shown(batches: Batches) -> Iterator[Iterable[pa.RecordBatch]]:
    """The same batches, valid; on a terminal with how many rows and bytes have come."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    from twinlake.reading.typed_files import valid

    if not console.is_terminal:
        yield valid(batches)
        return
    total = batches.facts["rows"]
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with bar_of(*columns) as bar:
        task = bar.add_task("", total=max(1, total))

        def counted() -> Iterator[pa.RecordBatch]:
            rows, size = 0, 0
            for batch in valid(batches):
                yield batch
                rows, size = rows + batch.num_rows, size + batch.nbytes
                bar.update(
                    task, completed=rows, description=f"{rows:,} of {total:,} rows, {size / 1e6:,.0f} MB"
                )

        yield counted()
