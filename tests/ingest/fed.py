"""A table that is fed by a stage's ingest as it goes: what it shows, and whether the batch layer agrees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tests.history import version_of
from tests.ingest.stage import Stage
from twinlake.base.job import Run
from twinlake.batch.verify import verify
from twinlake.kinds.analysis import columns
from twinlake.kinds.kind import Kind, StoredKind, ViewClock
from twinlake.lake.catalog.maintained_version import MaintainedVersion, open_version
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta import delta
from twinlake.lake.log.fresh_rows import FreshRows, NewRows
from twinlake.lake.log.log import Log
from twinlake.speed.advance import Standing, advance
from twinlake.topics.contract import Contract
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.earlier import MadeWith

WINDOWS = {"eventTime": "at", "lateAfter": "1 day", "discardAfter": "20000 days", "futureTolerance": "1 day"}


def contract_of(name: str, properties: Iterable[Mapping[str, Any]], **custom: str) -> Contract:
    """A topic's contract with these properties; event time is `at`, and nothing is late or unique."""
    document = {
        "apiVersion": "v3.2.0", "kind": "DataContract", "id": name, "name": name, "version": "1.0.0",
        "status": "active", "description": {"purpose": "A test."},
        "customProperties": [{"property": key, "value": one} for key, one in {**WINDOWS, **custom}.items()],
        "schema": [
            {"name": name, "physicalType": "topic", "logicalType": "object", "properties": [*properties]}
        ],
    }  # fmt: skip
    return parse_contract(document, name=name, file=f"contracts/{name}.yaml")


def renamed(stage: Stage) -> str:
    """A name for a topic whose schemas have nothing of orders, in a subject of its own; before `create`."""
    name = stage.topic.name.replace("orders", "things")
    stage.topic, stage.subject = replace(stage.topic, name=name), f"{name}-value"
    return name


class Fed:
    """`table` over the stage's topic; opened once the log is there."""

    def __init__(self, stage: Stage, table: StoredKind, made_with: MadeWith | None = None) -> None:
        """`made_with` is the schema that the table's version was made with."""
        self.stage = stage
        schemas = {} if made_with is None else {stage.topic.name: made_with}
        build = made_with if isinstance(made_with, int) else 1
        self.version = replace(version_of(table, build), schemas=schemas)
        self.table = table
        self.fresh: list[bool] = []
        self.at = Standing()
        self.feed: MaintainedVersion | None = None
        self.log: Log | None = None

    def run(self) -> Log:
        """Ingests all there is; every batch is a step of the table."""
        ingest = self.stage.ingest(then=self._step)
        self.stage.caught_up(ingest)
        ingest.stop()
        return ingest.log

    def _step(self, log: Log, batch: int, rows: NewRows | None) -> None:
        if self.feed is None or self.log is not log:  # a new process
            self.log = log
            opened = open_version(log.lake, self.version, {log.topic.name: log})
            assert isinstance(opened, MaintainedVersion)
            self.feed = opened
        if rows is not None:
            self.fresh.append(isinstance(rows, FreshRows))
        self.at = advance(self.feed, self.at, batch, rows)

    def shows(self) -> set[tuple[Any, ...]]:
        """The rows of the view; the batch layer has found the same, or this fails."""
        assert self.feed is not None
        feed, topic = self.feed, self.feed.topic
        pin = Pin(
            version=feed.version, delta_version=delta.newest_version(feed.path),
            position={topic: self.at.position}, watermarks={topic: self.at.watermark}, step=self.at.step,
            segment=self.at.segment,
        )  # fmt: skip
        certificate = verify(feed, pin, Run(id="verify"), "2026")
        assert certificate.equal, certificate.differences
        rows = feed.view(pin).collect()
        return {tuple(bytes(one) if isinstance(one, bytearray) else one for one in row) for row in rows}


def shown(stage: Stage, log: Log, table: Kind) -> list[tuple[Any, ...]]:
    """The rows of a view kind's table over the log, in the order of its columns; it must be sound."""
    assert columns(table, {log.topic.name: log.topic}, stage.spark)
    text = table.view({log.topic.name: f"({log.rows_sql(log.end())})"}, ViewClock())
    return sorted(map(tuple, stage.spark.sql(text).collect()), key=str)
