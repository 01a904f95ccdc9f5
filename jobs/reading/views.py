"""Which views readers have, as text made from the release log. Pure; the SQL server executes it.

`serve.<table>` follows the live release, `release_<n>.<table>` never changes,
`meta.<table>_<version>_<topic>` tells both a version's watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jobs import quote
from jobs.lake.relations import moment_sql
from jobs.lake.release_log import Release

SERVE = "serve"
META = "meta"


@dataclass(frozen=True, kw_only=True)
class View:
    """One view: its schema, its name, the SELECT it stands for."""

    schema: str
    name: str
    sql: str

    @property
    def place(self) -> str:
        return f"{quote.name(self.schema)}.{quote.name(self.name)}"

    def create(self) -> str:
        return f"CREATE VIEW {self.place} AS {self.sql}"

    def alter(self) -> str:
        """Replaces the text in one catalog call; a drop and create would leave a gap that readers hit."""
        return f"ALTER VIEW {self.place} AS {self.sql}"

    def drop(self) -> str:
        return f"DROP VIEW IF EXISTS {self.place}"


def release_schema(number: int) -> str:
    return f"release_{number}"


def watermark_name(table: str, version: str, topic: str) -> str:
    """Names in the catalog have letters, digits and _ only."""
    return f"{table}_{version.replace('-', '_')}_{topic}"


def watermark_sql(table: str, version: str, topic: str) -> str:
    """The scalar expression that a served view uses for its version's watermark of a topic."""
    return f"(SELECT watermark FROM {quote.name(META)}.{quote.name(watermark_name(table, version, topic))})"


def watermark_view(table: str, version: str, topic: str, micros: int | None) -> View:
    """The watermark as the newest commit tells it, NULL as long as there is none."""
    sql = f"SELECT {moment_sql(micros)} AS watermark"
    return View(schema=META, name=watermark_name(table, version, topic), sql=sql)


def fixed_views(release: Release, texts: Mapping[tuple[str, str], str]) -> list[View]:
    """The schema of one release; `texts` maps (table, version) to the SELECT of that version's view."""
    return [
        View(schema=release_schema(release.number), name=table, sql=texts[(table, version)])
        for table, version in sorted(release.tables.items())
    ]


def served_views(
    release: Release, texts: Mapping[tuple[str, str], str], of_logs: Mapping[str, str]
) -> list[View]:
    """What `serve` must hold for the live release; `of_logs` maps names to the SELECTs over logs."""
    tables = [
        View(schema=SERVE, name=table, sql=texts[(table, version)])
        for table, version in sorted(release.tables.items())
    ]
    return tables + [View(schema=SERVE, name=name, sql=sql) for name, sql in sorted(of_logs.items())]


def statements(
    wanted: Iterable[View], present: Mapping[tuple[str, str], str], schemas: Iterable[str]
) -> list[tuple[View, str]]:
    """From the views there are (`present`: (schema, name) -> text) to the wanted ones, none of them dropped.

    Each statement with the view that it leaves behind, one without text where it leaves none. Only schemas in
    `schemas` are tidied: a view there that nobody wants any more is dropped, last.
    """
    wanted = list(wanted)
    made = []
    for view in wanted:
        text = present.get((view.schema, view.name))
        if text is None:
            made.append((view, view.create()))
        elif text != view.sql:
            made.append((view, view.alter()))
    keep = {(view.schema, view.name) for view in wanted}
    tidied = set(schemas)
    gone = [View(schema=schema, name=name, sql="") for schema, name in sorted(present) if schema in tidied]
    return made + [(view, view.drop()) for view in gone if (view.schema, view.name) not in keep]
