"""Every allowed change of a schema, and two in a row, on a lake server with a real broker: what was released
before goes on by the names and types that it was made with, whoever changes first, producers or the project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from tests.ingest.fed import WINDOWS
from tests.ingest.stage import Stage, frame
from tests.ingest.test_evolution import AT, MOMENT, field, record
from tests.project import project_in
from tests.releases.lake import following_sql_server
from tests.releases.promised import CONTRACT, project_of
from twinlake.base.errors import DifferenceError
from twinlake.base.job import Run
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services, Settings
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.version import load, version_file
from twinlake.reading.follower import Follower
from twinlake.reading.past_tables import PastTables
from twinlake.server.lake_server import LakeServer
from twinlake.topics.topic import load_topic

NO_NOTE = {"default": "-"}
ONE = record(
    field("id", "string"), field("who", "string"), field("n", "int"), field("size", "float"),
    field("gone", "string"), field("rest", "string", default="rest"),
)  # fmt: skip
TWO = record(
    field("id", "string"), field("customer", "string", aliases=["who"]), field("n", "long"),
    field("size", "float"), field("note", "string", **NO_NOTE), field("rest", "string", default="rest"),
)  # fmt: skip
"""One was renamed, one widened, one dropped, one added."""
THREE = record(
    field("id", "string"), field("buyer", "string", aliases=["customer", "who"]), field("n", "long"),
    field("size", "double"), field("remark", "string", aliases=["note"], **NO_NOTE),
)  # fmt: skip
"""One was renamed again, one widened, one renamed that had been added, one with a default dropped."""
SENT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (ONE, {"who": "anna", "n": 1, "size": 0.5, "gone": "g", "rest": "r"}),
    (TWO, {"customer": "ben", "n": 2, "size": 1.5, "note": "hi", "rest": "r"}),
    (THREE, {"buyer": "cleo", "n": 3, "size": 2.5, "remark": "ho"}),
]
BY_ONE = [("anna", 1, 0.5, "g", "r"), ("ben", 2, 1.5, None, "r"), ("cleo", 3, 2.5, None, "rest")]
BY_TWO = [("anna", 1, 0.5, "-", "r"), ("ben", 2, 1.5, "hi", "r"), ("cleo", 3, 2.5, "ho", "rest")]
BY_THREE = [("anna", 1, 0.5, "-"), ("ben", 2, 1.5, "hi"), ("cleo", 3, 2.5, "ho")]
SHOWN = {
    1: ({"who": "string", "n": "int", "size": "float", "gone": "string", "rest": "string"}, BY_ONE),
    2: ({"customer": "string", "n": "bigint", "size": "float", "note": "string", "rest": "string"}, BY_TWO),
    3: ({"buyer": "string", "n": "bigint", "size": "double", "remark": "string"}, BY_THREE),
}
LOGICAL = {"string": "string", "int": "integer", "bigint": "integer", "float": "number", "double": "number"}


def tables(topic: str, columns: dict[str, str]) -> dict[str, Kind]:
    """One that stores rows, and one that is a view over the log; both show these columns by `id`."""
    read = {name: name for name in ("id", *columns)}
    return {
        "newest": Latest(
            name="newest", inputs=(topic,), columns=read, keys=("id",), values=tuple(columns)
        ),
        "all": Events(name="all", inputs=(topic,), columns=read),
    }  # fmt: skip


class Project:
    """A project's folder, the lake server that works with it (restarted to change files), and producers."""

    def __init__(self, stage: Stage, folder: Path, home: Path, sql_url: str) -> None:
        self.stage, self.folder, self.topic = stage, folder, stage.topic.name.replace("orders", "things")
        self.stage.topic, self.stage.subject = _named(stage, self.topic), f"{self.topic}-value"
        stage.create(partitions=1)
        project_of(folder, {})
        for file in (*folder.glob("schemas/*"), *folder.glob("contracts/*")):
            file.unlink()
        self.settings = Settings(home=home, in_project=project_in(folder))
        self.settings.lake.mkdir(parents=True)
        Services(
            bootstrap_servers=stage.broker.bootstrap, registry_url=stage.registry.url, sql_url=sql_url,
            lake=str(self.settings.lake),
        ).save(self.settings.services_file)  # fmt: skip
        self.server: LakeServer | None = None
        self._runs = 0

    def adopt(self, *schemas: dict[str, Any]) -> None:
        """The lake server runs with these schema files, and a contract that promises the newest's fields."""
        self.write(*schemas)
        self.open()

    def write(self, *schemas: dict[str, Any]) -> None:
        """The files alone; the lake server, if one runs, does not look at them."""
        for number, avro in enumerate(schemas, start=1):
            (self.folder / f"schemas/{self.topic}.v{number}.avsc").write_text(json.dumps(avro))
        properties = [
            {"name": "at", "logicalType": "timestamp", "physicalType": "timestamp", "required": True},
            {"name": "id", "logicalType": "string", "physicalType": "string", "required": True},
            *(
                {"name": name, "logicalType": LOGICAL[type_], "physicalType": type_, "required": True}
                for name, type_ in SHOWN[len(schemas)][0].items()
            ),
        ]
        self.promise(properties)

    def promise(self, properties: list[dict[str, Any]], **more: str) -> None:
        """The topic's contract."""
        custom = [{"property": key, "value": value} for key, value in {**WINDOWS, **more}.items()]
        document = {
            "apiVersion": "v3.2.0", "kind": "DataContract", "id": self.topic, "name": self.topic,
            "version": "1.0.0", "status": "active", "description": {"purpose": "A test."},
            "customProperties": custom,
            "schema": [{"name": self.topic, "physicalType": "topic", "logicalType": "object",
                        "properties": properties}],
        }  # fmt: skip
        (self.folder / f"contracts/{self.topic}.yaml").write_text(yaml.safe_dump(document))
        load_topic(self.topic, project_in(self.folder))  # the files agree with each other

    def open(self) -> None:
        """A lake server that works with the files as they are now."""
        self.stop()
        self.server = LakeServer(self.settings, utc_now, lambda settings: self.stage.spark)
        self.server.start()

    def stop(self) -> None:
        if self.server is not None:
            self.server.stop()

    def send(self, *numbers: int) -> None:
        """A record each of these schemas' producers."""
        for number in numbers:
            avro, values = SENT[number - 1]
            plain = {
                **avro,
                "fields": [{**one, "type": "long"} if one is AT else one for one in avro["fields"]],
            }
            schema_id = self.stage.registry.register(self.stage.subject, avro)
            self.stage.produce(frame(schema_id, plain, {"at": MOMENT, "id": f"r{number}", **values}))

    def caught_up(self) -> None:
        """Everything is in the log and in every living version, none of which stands still."""
        assert self.server is not None
        server, ingest = self.server, self.server.ingests[self.topic]

        def whole() -> bool | None:
            assert ingest.error is None, ingest.error
            stalled = [one for one in server.lake.versions.health() if one.stalled]
            assert not stalled, stalled
            at = {one.position[self.topic] for one in server.lake.versions.health()}
            there = ingest.state == "running" and ingest.behind(ingest.broker_ends()) == 0
            return True if there and at <= {ingest.log_end.batch} else None

        wait_for("the lake", whole, 120, every_s=0.2)

    def do(self, kind: str, **params: Any) -> dict[str, Any]:
        assert self.server is not None
        self._runs += 1
        known = self.server.jobs._kinds[kind]
        run = Run(id=f"job{self._runs}")
        done: Any = known.handler(self.server.lake, known.params.model_validate(params), run)
        if hasattr(done, "error"):
            raise done.error
        return dict(done.to_json())

    def release(self, number: int) -> None:
        """Tables by the names of that schema become live, after all comparisons."""
        self.release_all(tables(self.topic, SHOWN[number][0]), SHOWN[number][0])

    def release_all(self, defined: dict[str, Kind], columns: dict[str, str]) -> None:
        """These, each of which shows the columns by `id`."""
        plan = self.plan_all(defined, columns)
        self.do("build", plan=plan)
        self.do("promote", plan=plan, approved_by="tester")

    def plan_all(self, defined: dict[str, Kind], columns: dict[str, str]) -> str:
        """The plan that makes them live."""
        for name in defined:
            lines = [
                f"      - {{name: {column}, logicalType: {LOGICAL[type_]}, physicalType: '{type_}'}}\n"
                for column, type_ in {"id": "string", **columns}.items()
            ]
            file = self.folder / "contracts" / f"{name}.yaml"
            file.write_text(CONTRACT.format(name=name) + "".join(lines))
        made = {name: table.to_json() for name, table in defined.items()}
        return str(self.do("plan", definitions=made, git_commit=None)["id"])

    def shows(self, release: int, number: int, sent: set[int]) -> None:
        """Every way to read that release's tables shows the records sent by the names of that schema."""
        names, rows = SHOWN[number]
        self.shows_rows(release, names, sorted((f"r{one}", *rows[one - 1]) for one in sent))

    def shows_rows(self, release: int, names: dict[str, str], expected: list[tuple[Any, ...]]) -> None:
        """The same of any rows of these columns, each after its `id`."""
        assert self.server is not None
        spark, lake = self.stage.spark, self.settings.lake
        made = next(one for one in release_log.releases(lake) if one.number == release)
        follower, past = Follower(spark, lake), self.past
        live = release_log.live(lake)
        moments = [f"release:{release}"] if live and live.number == release else []
        end = self.server.ingests[self.topic].log_end.batch
        for table, name in made.tables.items():
            version = load(version_file(lake, table, name))
            assert self.do("verify", table=table, version=name)["equal"]
            texts = [follower._version(table, name).sql]
            for moment in moments:
                schema, _ = past._made(moment, f"serve.{table}")
                texts.append(f"SELECT * FROM {schema}.{table}")
            opened = self.server.lake.versions.opened(version)
            pin = self.server.lake.versions.pin(version, Run(id="pin"))
            assert pin.position == {self.topic: end}
            for frame_ in (*map(spark.sql, texts), opened.view(pin)):
                found = frame_.select("id", *names)
                assert sorted(map(tuple, found.collect())) == expected, (table, version.schemas)
                assert dict(found.dtypes) == {"id": "string", **names}

    @cached_property
    def past(self) -> PastTables:
        return PastTables(self.stage.spark, self.settings.lake)

    def shows_as_of(self, release: int, names: dict[str, str], expected: list[tuple[Any, ...]]) -> None:
        """What AS OF an earlier release shows: its tables, where it was superseded."""
        for table in ("newest", "all"):
            schema, _ = self.past._made(f"release:{release}", f"serve.{table}")
            found = self.stage.spark.sql(f"SELECT id, {', '.join(names)} FROM {schema}.{table}")
            assert sorted(map(tuple, found.collect())) == expected, table
            assert dict(found.dtypes) == {"id": "string", **names}


def _named(stage: Stage, name: str) -> Any:
    from dataclasses import replace

    return replace(stage.topic, name=name)


@pytest.fixture
def project(faked: Stage, spark: SparkSession, tmp_path: Path) -> Iterator[Project]:
    with following_sql_server(tmp_path / "lake-home" / "lake") as sql_url:
        made = Project(faked, tmp_path / "project", tmp_path / "lake-home", sql_url)
        yield made
        made.stop()


def test_releases_go_on_by_their_own_names_when_the_project_changes_first(project: Project) -> None:
    project.adopt(ONE)
    project.release(1)
    project.send(1)
    project.caught_up()
    planned = project.plan_all(tables(project.topic, {"who": "string"}), {"who": "string"})
    project.adopt(ONE, TWO)
    with pytest.raises(DifferenceError) as refused:
        project.do("build", plan=planned)
    assert "something else than when it was planned" in refused.value.why
    project.send(2)
    project.caught_up()
    project.shows(1, 1, {1, 2})
    project.release(2)  # it is compared with release 1, whose columns have other names
    project.adopt(ONE, TWO, THREE)
    project.send(3)
    project.caught_up()
    project.shows(1, 1, {1, 2, 3})
    project.shows(2, 2, {1, 2, 3})
    project.release(3)

    project.do("rollback", approved_by="tester", to=1)

    project.shows(4, 1, {1, 2, 3})
    project.shows(3, 3, {1, 2, 3})
    for release, sent in {1: {1, 2}, 2: {1, 2, 3}}.items():
        names, rows = SHOWN[release]
        project.shows_as_of(release, names, [(f"r{one}", *rows[one - 1]) for one in sorted(sent)])


def test_releases_go_on_by_their_own_names_when_producers_change_first(project: Project) -> None:
    project.adopt(ONE)
    project.release(1)
    project.send(1, 2, 3)
    project.caught_up()
    project.shows(1, 1, {1})  # the others wait in quarantine
    project.adopt(ONE, TWO, THREE)
    project.caught_up()

    project.shows(1, 1, {1, 2, 3})
    project.release(3)
    project.shows(2, 3, {1, 2, 3})
    project.do("rollback", approved_by="tester", to=1)
    project.shows(3, 1, {1, 2, 3})


def test_a_value_that_does_not_fit_stalls_what_was_made_with_the_narrower_type_and_says_so(
    project: Project,
) -> None:
    project.adopt(ONE)
    project.release(1)
    project.adopt(ONE, TWO)
    avro, values = SENT[1]
    schema_id = project.stage.registry.register(project.stage.subject, avro)
    plain = {**avro, "fields": [{**one, "type": "long"} if one is AT else one for one in avro["fields"]]}
    project.stage.produce(frame(schema_id, plain, {"at": MOMENT, "id": "big", **values, "n": 2**40}))
    assert project.server is not None
    versions = project.server.lake.versions

    def told() -> dict[str, str] | None:
        return next((one.error for one in versions.health() if one.stalled), None)

    why = wait_for("the version to stall", told, 60, every_s=0.2)

    assert "field 'n' does not fit into int" in why["why"]
    assert why["remedy"].startswith("release a definition of it that is made with the newest schema")
    project.release(2)


def test_a_version_of_before_learns_which_schema_it_was_made_with(project: Project) -> None:
    project.adopt(ONE)
    project.release(1)
    project.send(1)
    project.caught_up()
    project.stop()
    for file in project.settings.lake.glob("tables/*/*.json"):
        stored = json.loads(file.read_text())
        del stored["schemas"]
        file.write_text(json.dumps(stored))

    project.adopt(ONE, TWO)
    project.send(2)
    project.caught_up()

    project.shows(1, 1, {1, 2})
