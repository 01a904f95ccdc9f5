"""What would strand a table is refused before it is active: by name, with an order of steps that works."""

from __future__ import annotations

import json
from typing import Any

from tests.ingest.test_evolution import MOMENT, field, record
from tests.ingest.test_living_json import AT, ID, one
from tests.ingest.test_living_versions import LOGICAL, ONE, TWO, Project, project
from tests.ingest.test_unreadable import send
from tests.project import project_in
from twinlake.base.errors import ContractError
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind
from twinlake.lake.log import active_topics
from twinlake.releases.check import check

__all__ = ["project"]  # the fixture

SHAPE = [AT, ID, one("who", "string", "string")]


def by(topic: str, name: str, sql: str) -> dict[str, Kind]:
    return {"named": Events(name="named", inputs=(topic,), columns={"id": "id", name: sql})}


def refused(project: Project) -> list[ContractError]:
    """What `twinlake check` says against the files of the topic."""
    spark, lake = project.stage.spark, project.settings.lake
    found = check([project_in(project.folder)], lambda: spark, lake=lake)
    assert not found.warnings, found.warnings
    return [
        problem
        for problem in found.problems
        if isinstance(problem, ContractError) and project.topic in problem.file
    ]


def state(project: Project) -> dict[str, Any]:
    assert project.server is not None
    (found,) = (one for one in project.server.status()["topics"] if one["name"] == project.topic)
    return dict(found)


def test_a_key_that_a_live_table_reads_is_let_go_in_the_order_that_the_refusal_says(project: Project) -> None:
    keyed = {"format": "json", "keyFormat": "string"}
    project.promise(SHAPE, **keyed)
    project.open()
    project.release_all(by(project.topic, "who", "_key"), {"who": "string"})
    project.stage.produce(json.dumps({"at": "2026-01-31T12:00:00Z", "id": "r1", "who": "anna"}).encode())
    project.caught_up()
    assert refused(project) == []
    before = active_topics.active_topic(project.settings.lake, project.topic)
    project.promise(SHAPE, format="json")

    (why,) = refused(project)

    assert "table named (live in release 1) could not be read any more" in why.why_text
    assert "_key" in why.why_text
    project.open()
    assert state(project)["state"] == "stopped" and "_key" in state(project)["error"]["why"]
    assert active_topics.active_topic(project.settings.lake, project.topic) == before
    project.promise(SHAPE, **keyed)  # from here on as the refusal says
    project.open()
    project.release_all(by(project.topic, "who", "who"), {"who": "string"})
    project.promise(SHAPE, format="json")
    (why,) = refused(project)
    assert "table named (release 1 can be gone back to)" in why.why_text
    project.do("retire", keep=1)
    assert refused(project) == []
    project.open()
    project.caught_up()
    project.shows_rows(2, {"who": "string"}, [("r1", "anna")])


def test_a_schema_file_that_tables_were_made_with_is_neither_edited_nor_removed(project: Project) -> None:
    project.adopt(ONE, TWO)
    project.release(2)
    project.stop()
    assert refused(project) == []
    (project.folder / f"schemas/{project.topic}.v2.avsc").unlink()
    project.write(ONE)

    (gone,) = refused(project)

    assert gone.file.endswith(".v2.avsc") and "it is gone" in gone.why_text
    assert "table all (live in release 1); table newest (live in release 1)" in gone.why_text
    edited = record(*ONE["fields"][1:-1], field("rest", "string", default="other"))
    project.write(edited, TWO)
    (why,) = refused(project)
    assert why.file.endswith(".v1.avsc") and "says something else" in why.why_text
    assert "table newest (live in release 1)" in why.why_text


def test_a_type_that_the_log_cannot_read_is_refused_before_the_file_is_active(project: Project) -> None:
    project.adopt(ONE)
    wider = record(*ONE["fields"][1:], field("more", "long"))
    sent = {"who": "anna", "n": 1, "size": 0.5, "gone": "g", "rest": "r"}
    send(project.stage, wider, at=MOMENT, id="r1", more=2**40, **sent)
    project.caught_up()
    narrow = record(*ONE["fields"][1:], field("more", "int", default=0))
    (project.folder / f"schemas/{project.topic}.v2.avsc").write_text(json.dumps(narrow))
    plain = {"who": "string", "n": "int", "size": "float", "gone": "string", "rest": "string", "more": "int"}
    more = [one(name, LOGICAL[type_], type_, required=True) for name, type_ in plain.items()]
    project.promise([AT, ID, *more])

    (why,) = refused(project)

    assert "'more' is int, and the log has it as bigint" in why.why_text
    assert "a name of its own" in why.remedy
