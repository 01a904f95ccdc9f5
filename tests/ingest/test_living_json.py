"""A contract of a topic in JSON drops, renames and widens fields: tables of before go on by their own."""

from __future__ import annotations

import json
from typing import Any

from tests.ingest.test_living_versions import Project, project
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest

__all__ = ["project"]  # the fixture

AT = {"name": "at", "logicalType": "timestamp", "physicalType": "timestamp", "required": True}


def one(name: str, logical: str, physical: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "logicalType": logical, "physicalType": physical, **more}


def place(*inside: dict[str, Any]) -> dict[str, Any]:
    return one("place", "object", "struct", properties=[*inside])


CITY, ZIP = one("city", "string", "string"), one("zip", "number", "decimal(5,0)")
ID = one("id", "string", "string", required=True)
ONE = [AT, ID, one("who", "string", "string"), one("n", "integer", "int"),
       one("gone", "number", "decimal(4,2)"), place(CITY, ZIP)]  # fmt: skip
TWO = [AT, ID, one("customer", "string", "string"), one("n", "integer", "bigint"), place(CITY)]
SENT: list[dict[str, Any]] = [
    {"who": "anna", "n": 1, "gone": 1.5, "place": {"city": "c", "zip": 10}},
    {"customer": "ben", "n": 2, "place": {"city": "d"}},
    {"who": "cleo", "n": 3, "gone": 2.25, "place": {"city": "e", "zip": 20}},  # a producer of before
    {"customer": "dora", "n": 4, "gone": 1.005, "place": {"zip": "many"}},  # what nobody promises any more
]
BY_ONE = {"who": "string", "n": "int", "gone": "string", "zip": "string"}
BY_TWO = {"customer": "string", "n": "bigint", "city": "string"}
ROWS_ONE = [("r1", "anna", 1, "1.50", "10"), ("r2", None, 2, None, None), ("r3", "cleo", 3, "2.25", "20"),
            ("r4", None, 4, None, None)]  # fmt: skip
ROWS_TWO = [("r1", None, 1, "c"), ("r2", "ben", 2, "d"), ("r3", None, 3, "e"), ("r4", "dora", 4, None)]
READ = {"gone": "CAST(gone AS string)", "zip": "CAST(place.zip AS string)", "city": "place.city"}


def tables(topic: str, columns: dict[str, str]) -> dict[str, Kind]:
    read = {name: READ.get(name, name) for name in ("id", *columns)}
    newest = Latest(name="newest", inputs=(topic,), columns=read, keys=("id",), values=tuple(columns))
    return {"newest": newest, "all": Events(name="all", inputs=(topic,), columns=read)}


def adopt(project: Project, properties: list[dict[str, Any]]) -> None:
    project.promise(properties, format="json")
    project.open()


def send(project: Project, *numbers: int) -> None:
    for number in numbers:
        document = {"at": "2026-01-31T12:00:00Z", "id": f"r{number}", **SENT[number - 1]}
        project.stage.produce(json.dumps(document).encode())
    project.caught_up()


def test_tables_go_on_by_the_contract_that_they_were_made_with(project: Project) -> None:
    adopt(project, ONE)
    project.release_all(tables(project.topic, BY_ONE), BY_ONE)
    send(project, 1)

    adopt(project, TWO)
    send(project, 2, 3, 4)

    project.shows_rows(1, BY_ONE, ROWS_ONE)
    project.release_all(tables(project.topic, BY_TWO), BY_TWO)
    project.shows_rows(2, BY_TWO, ROWS_TWO)
    project.do("rollback", approved_by="tester", to=1)
    project.shows_rows(3, BY_ONE, ROWS_ONE)
    project.shows_as_of(2, BY_TWO, ROWS_TWO)
    project.shows_as_of(1, BY_ONE, ROWS_ONE)
