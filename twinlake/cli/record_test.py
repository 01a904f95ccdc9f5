"""`twinlake test --record TABLE --keys ...`: a unit test of the records behind one row of a running lake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from twinlake.base.errors import UsageError
from twinlake.base.files import shown_path
from twinlake.cli.local_lake import log_files
from twinlake.cli.output import say, tell
from twinlake.cli.query import waiting_for_server
from twinlake.config.project import Project
from twinlake.config.settings import Settings
from twinlake.reading.client import ask_why
from twinlake.reading.wire import key_of

if TYPE_CHECKING:
    from twinlake.kinds.kind import Kind


def record(settings: Settings, table: str, keys: list[str]) -> None:
    """Asks the SQL server which records are behind the row, reads them from the log's files, and adds a case
    with the rows that the witness finds of them."""
    from twinlake.kinds.dependencies import upstream_topics
    from twinlake.unit_tests.project_tests import known_world
    from twinlake.unit_tests.recording import add_case, records_of

    if not isinstance(settings.lake, Path):
        raise UsageError("records cannot be read", "the lake is in a store", "write the case by hand")
    found = ask_why(settings.services(), table, key_of(keys), None, waiting_for_server())
    with known_world(settings.sources) as world:
        if table not in world.tables:
            raise UsageError(f"{table} is not defined here", "the lake has it", "record it in its project")
        records = {}
        for topic in upstream_topics(world.tables[table], world.tables):
            behind = [one for one in found["records"] if one["topic"] == topic]
            ids = [(one["epoch"], one["partition"], one["offset"]) for one in behind]
            if ids:
                records[topic] = records_of(world.topics[topic], log_files(settings.lake, topic), ids)
        project = project_of(settings, world.tables[table])
        file = add_case(world, table, project.tables, _name(keys), records)
    say(f"{shown_path(file)}: case {_name(keys)!r}, of {sum(map(len, records.values()))} records")
    many = sum(one["records"] for one in found["partitions"])
    if many > len(found["records"]):
        tell((f"{many:,} records are behind the row; the case has the first of them", "yellow"))
    where = "" if project.root == settings.project.root else f" --project {shown_path(project.root)}"
    tell(f"next: read the rows, for they are what the definition says now; then `twinlake{where} test`")


def project_of(settings: Settings, table: Kind) -> Project:
    """That whose definition it is: a lake may have the tables of examples, too."""
    file = Path(table.place.file) if table.place else Path()
    return next((one for one in settings.sources if file.is_relative_to(one.tables)), settings.project)


def _name(keys: list[str]) -> str:
    return f"recorded {', '.join(keys)}" if keys else "recorded"
