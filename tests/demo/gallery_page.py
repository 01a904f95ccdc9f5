"""docs/gallery.md from the code: `python -m tests.demo.gallery_page > docs/gallery.md`.

The rows are what each example's oracle says of the first records of its sequences; that the tables show the
same is for tests/gallery to prove.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from tests.oracle.gallery import EXAMPLES as ORACLES
from tests.oracle.gallery.records import Record, valid
from tests.oracle.gallery.schemas import schema_of
from tests.oracle.topic import Records
from tests.project import EXAMPLES, GALLERY, SOURCES, example_of, sequence
from twinlake.cli.gallery import about
from twinlake.kinds.definition import SQL
from twinlake.kinds.sql_form import header

NOW = datetime(2026, 2, 1, 0, 0, 30, tzinfo=UTC)
SEED, RECORDS, ROWS = 20, 600, 4
SPANS = {"trades": timedelta(minutes=1), "clicks": timedelta(minutes=20), "devices": timedelta(minutes=5)}
"""The time in which an example's records lie; others' lie in a few hours."""
USUAL_SPAN = timedelta(hours=3)

HEAD = f"""# The gallery

Made from the code by `python -m tests.demo.gallery_page`; a test compares.

What books on stream processing teach with, each as one definition that both layers run. Beside each is
what it shows after the first {RECORDS} records of each topic (seed {SEED}): up to {ROWS} rows, without
record ids and without what follows the watermark. Records are late, out of order, tied and repeated on
purpose. The rows are those of the oracle in `tests/oracle/gallery/`, which shares no code with the platform
and which `tests/gallery/` compares with every view; quantiles in a table are at most 1 % off these.

An example is a folder of `examples/`, and a project: `jobs/tables/`, `contracts/`, `schemas/`, and
`records.py`, which draws its records.
"""


def text() -> str:
    told = [HEAD]
    for name, tables in EXAMPLES.items():
        told += [f"## {name}", "", about(example_of(name)), "", *_topics(name), ""]
        rows = ORACLES[name].tables(*_history(name))
        known: dict[str, Any] = {}
        for written in tables:
            table = known[written.name] = written.bound({read: known[read] for read in written.reads})
            told += [*_definition(table), "", *_shown(table, rows[table.name]), ""]
    return "\n".join(told).rstrip() + "\n"


def _topics(example: str) -> Iterator[str]:
    yield "| topic | records | fields |"
    yield "|---|---|---|"
    for topic in SOURCES[example]:
        schema, contract = _files(example, topic)
        is_avro = isinstance(schema, dict)
        promised = schema["fields"] if is_avro else contract["schema"][0]["properties"]
        fields = ", ".join(f"`{field['name']}`" for field in promised)
        yield f"| `{topic}` | {contract['description']['purpose']} | {fields} |"


def _history(example: str) -> tuple[dict[str, list[Record]], dict[str, datetime]]:
    """The records of each topic that count, as if all had come at once, and the watermarks."""
    span_ms = SPANS.get(example, USUAL_SPAN) // timedelta(milliseconds=1)
    now_ms = int(NOW.timestamp() * 1000)
    held = {}
    for topic in SOURCES[example]:
        source = sequence(example, topic, seed=SEED, run="page", schema_id=1, span_ms=span_ms)
        drawn = source.draw(RECORDS, now_ms)
        records = Records(
            partitions=[0] * RECORDS, offsets=list(range(RECORDS)), timestamps_ms=[now_ms] * RECORDS,
            keys=list(drawn.keys), values=drawn.values,
        )  # fmt: skip
        held[topic] = valid(records, *_files(example, topic))
    return held, dict.fromkeys(SOURCES[example], NOW)


def _files(example: str, topic: str) -> tuple[Any, dict[str, Any]]:
    """Schema and contract; a topic in JSON has no schema but its contract."""
    schema = schema_of(GALLERY / example, topic)
    return schema, yaml.safe_load((GALLERY / example / "contracts" / f"{topic}.yaml").read_text())


def _definition(table: Any) -> Iterator[str]:
    """The docstring, or prose on top, and the code below the imports of the file in which it is written."""
    assert table.place is not None  # it was written, and not read back from JSON
    code = Path(table.place.file).read_text()
    language = "python"
    if table.place.file.endswith(SQL):
        doc, language = header.read(code).about, "sql"
        code = code[len(header.text(doc, {})) :]
    else:
        doc, rest = code.removeprefix('"""').split('"""', 1)
        code = rest[rest.index("TABLE = ") :]
    yield f"### {table.name}"
    yield ""
    yield doc.strip()
    yield ""
    yield f"```{language}"
    yield code.rstrip()
    yield "```"


def _shown(table: Any, rows: dict[tuple[Any, ...], dict[str, Any]]) -> Iterator[str]:
    whole = [{**dict(zip(table.view_keys, key, strict=True)), **row} for key, row in rows.items()]
    columns = [name for name in table.output if whole and name in whole[0] and name not in table.implied]
    # rows without NULLs tell more
    whole.sort(key=lambda row: (sum(row[name] is None for name in columns), row.get("place", 0), str(row)))
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    first = 0 if "place" in columns else max(0, (len(whole) - ROWS) // 2)  # where nothing is late
    for row in whole[first : first + ROWS]:
        yield f"| {' | '.join(_plain(row[name]) for name in columns)} |"
    if len(whole) > ROWS:
        yield ""
        yield f"and {len(whole) - ROWS:,} rows more."


def _plain(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_plain(one)}' for name, one in value.items())}}}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S") + (
            f".{value.microsecond // 1000:03d}" * bool(value.microsecond)
        )
    return f"{value:.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    print(text(), end="")
