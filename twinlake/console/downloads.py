"""Downloads: all rows of a statement as CSV, Parquet or Arrow; whole, or not at all.

They go through a file that has no name: in memory as long as it is small, on the disk of temporary files as
far as MOST_BYTES. Parquet and Arrow keep every type as the SQL server has it.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from twinlake.base.errors import UsageError
from twinlake.config.settings import Services, Settings
from twinlake.console.pages import cell_text
from twinlake.console.sessions import Session
from twinlake.console.statement import Asked, own, patient
from twinlake.reading import typed_files, wire
from twinlake.reading.client import Row, ask_batches, ask_each
from twinlake.reading.typed_files import Write

if TYPE_CHECKING:
    import pyarrow as pa

MOST_IN_CSV = 100_000
MOST_ROWS = 1_000_000
"""Of Parquet and Arrow."""
MOST_BYTES = 256 << 20
"""Of a file, whatever its form."""
LONGEST_S = 600.0
"""So long it may be on its way."""
_GROUP_BYTES = 16 << 20
"""Rows of a group of Parquet, as Arrow, are in memory at once."""
_IN_MEMORY = 4 << 20
_PIECE = 64 << 10
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # with the wide forms
_SMALLER = "ask for fewer rows or columns; `twinlake query --format` gives any number"


Download = Callable[[Services, Asked, IO[bytes]], None]
"""Puts all rows of a statement into a file, again from its begin where the SQL server has died on the way."""


def as_csv(services: Services, asked: Asked, file: IO[bytes]) -> None:
    def take(head: dict[str, Any], found: Iterator[Row]) -> None:
        _refuse_more(head["truncated"], MOST_IN_CSV)
        _begin(file)
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        try:
            writer = csv.writer(text)
            writer.writerow([_harmless(column["name"]) for column in head["columns"]])
            is_number = [column["type"].partition("(")[0] in _NUMBERS for column in head["columns"]]
            for row in found:
                values = zip(row.values(), is_number, strict=True)
                writer.writerow([value if exact else _harmless(cell_text(value)) for value, exact in values])
                _refuse_large(file)
        finally:
            text.detach()  # or the file would be closed with it

    ask_each(services, asked.sql, MOST_IN_CSV, asked.as_of or None, take, patient())


def in_format(write: Write) -> Download:
    """With every type as the SQL server has it."""

    def written_as(services: Services, asked: Asked, file: IO[bytes]) -> None:
        def take(stream: pa.RecordBatchReader) -> None:
            _refuse_more(wire.facts_of(stream.schema)["truncated"], MOST_ROWS)
            _begin(file)
            write(stream.schema, typed_files.valid(_bounded(stream, file)), file)
            _refuse_large(file)

        ask_batches(services, asked.sql, MOST_ROWS, asked.as_of or None, take, patient())

    return written_as


@dataclass(frozen=True, kw_only=True)
class Form:
    """One that a person may choose."""

    name: str
    media_type: str
    write: Download


def _write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> None:
    typed_files.write_parquet(schema, batches, file, _GROUP_BYTES)


FORMS = {
    "csv": Form(name="CSV", media_type="text/csv; charset=utf-8", write=as_csv),
    "parquet": Form(
        name="Parquet", media_type="application/vnd.apache.parquet", write=in_format(_write_parquet)
    ),
    "arrow": Form(
        name="Arrow", media_type="application/vnd.apache.arrow.file",
        write=in_format(typed_files.write_arrow),
    ),
}
"""By the end of the file's name."""


def written(settings: Settings, session: Session, asked: Asked, form: Form) -> IO[bytes]:
    """The file, whole, which its caller closes; UsageError where there are more rows or bytes than may be."""
    asked.refuse_none()
    file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)
    try:
        form.write(own(settings, session), asked, file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _begin(file: IO[bytes]) -> None:
    """It may hold what came of an answer that broke off, and was asked for again."""
    file.seek(0)
    file.truncate()


def _bounded(batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        _refuse_large(file)


def _refuse_more(is_truncated: bool, most: int) -> None:
    if is_truncated:
        raise UsageError("the rows were not written", f"there are more than {most:,}", _SMALLER)


def _refuse_large(file: IO[bytes]) -> None:
    if file.tell() > MOST_BYTES:
        raise UsageError("the rows were not written", f"they are more than {MOST_BYTES:,} bytes", _SMALLER)


def _harmless(text: str) -> str:
    """What a spreadsheet would run as a formula begins with an apostrophe; values come from anybody."""
    return f"'{text}" if text.startswith("\t") or text.lstrip().startswith(_FORMULA) else text


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """As they are sent."""
    while piece := file.read(_PIECE):
        yield piece
