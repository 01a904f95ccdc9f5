"""Which views readers have, as text made from the release log. Pure; the SQL server executes it.

`serve.<table>` follows the live release, `release_<n>.<table>` never changes. A table with windows has
`<table>_late` beside it; every topic has its views in each of these schemas, see `lake/topic_views.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from twinlake.base import quote
from twinlake.lake.catalog.release_log import Release

SERVE = "serve"
Texts = Mapping[tuple[str, str], str]
NOTHING: Texts = {}


@dataclass(frozen=True, kw_only=True)
class View:
    """One view: its schema, its name, the SELECT it stands for."""

    schema: str
    name: str
    sql: str

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others: names that differ in case alone are one to the catalog."""
        return self.schema, self.name.lower()

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


def late_name(table: str) -> str:
    """The view that tells what came late for the windows of a table; no other table may have the name."""
    return f"{table}_late"


def fixed_views(
    release: Release, texts: Texts, of_logs: Mapping[str, str], lates: Texts = NOTHING
) -> list[View]:
    """The schema of one release, see `served_views`."""
    return _views(release_schema(release.number), release, texts, of_logs, lates)


def served_views(
    release: Release, texts: Texts, of_logs: Mapping[str, str], lates: Texts = NOTHING
) -> list[View]:
    """What `serve` must hold for the live release; `of_logs` maps names to the SELECTs over logs.

    `texts` and `lates` map (table, version) to the SELECT of that version's view, and of what came late for
    its windows where it has any.
    """
    return _views(SERVE, release, texts, of_logs, lates)


def unreleased_views(of_logs: Mapping[str, str]) -> list[View]:
    """What `serve` holds before the first release."""
    return [View(schema=SERVE, name=name, sql=sql) for name, sql in sorted(of_logs.items())]


def _views(
    schema: str, release: Release, texts: Texts, of_logs: Mapping[str, str], lates: Texts
) -> list[View]:
    live = sorted(release.tables.items())
    taken = {table.lower() for table, _ in live}  # by a release of before the name was refused
    tables = [View(schema=schema, name=table, sql=texts[(table, version)]) for table, version in live]
    beside = {
        late_name(table): lates[(table, version)] for table, version in live if (table, version) in lates
    }
    return tables + [
        View(schema=schema, name=name, sql=sql)
        for name, sql in (*beside.items(), *sorted(of_logs.items()))
        if name.lower() not in taken
    ]


def statements(
    wanted: Iterable[View], present: Mapping[tuple[str, str], str], schemas: Iterable[str]
) -> list[tuple[View, str]]:
    """From the views there are (`present`: key -> text) to the wanted ones, none of them dropped.

    Each statement with the view that it leaves behind, one without text where it leaves none. Only schemas in
    `schemas` are tidied: a view there that nobody wants any more is dropped, last.
    """
    wanted = list(wanted)
    made = []
    for view in wanted:
        text = present.get(view.key)
        if text is None:
            made.append((view, view.create()))
        elif text != view.sql:
            made.append((view, view.alter()))
    keep = {view.key for view in wanted}
    tidied = set(schemas)
    gone = [View(schema=schema, name=name, sql="") for schema, name in sorted(present) if schema in tidied]
    return made + [(view, view.drop()) for view in gone if view.key not in keep]
