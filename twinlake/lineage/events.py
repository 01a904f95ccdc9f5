"""Makes OpenLineage's events: which job read and wrote which data sets, column by column.

Data sets are Kafka's topics, the lake's logs, the rows of stored versions, and the views that people read;
jobs are those of the lake `twinlake://<lake id>`. The classes are those of OpenLineage's own client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from openlineage.client import event_v2 as ol
from openlineage.client.generated import column_lineage_dataset as lineage
from openlineage.client.generated import error_message_run, job_type_job, schema_dataset
from openlineage.client.generated import output_statistics_output_dataset as statistics
from openlineage.client.generated.base import OutputDatasetFacet

from twinlake.base.location import Location, Remote
from twinlake.base.version import VERSION
from twinlake.kinds.kind import Kind, is_stored
from twinlake.lake.catalog.version import Version
from twinlake.lake.log.log import log_path
from twinlake.lineage.columns import Made, Source
from twinlake.lineage.of_version import made
from twinlake.topics.topic import Topic

PRODUCER = f"urn:twinlake:{VERSION}"


class Events:
    """Of one lake."""

    def __init__(self, lake: Location, lake_id: str, kafka: str) -> None:
        self.namespace = f"twinlake://{lake_id}"
        self._lake = lake
        self._kafka = f"kafka://{kafka.split(',')[0]}"

    def topic(self, name: str) -> ol.Dataset:
        """A topic of Kafka's."""
        return ol.Dataset(self._kafka, name)

    def log(self, topic: Topic) -> ol.Dataset:
        """What ingest has written of it."""
        place = _place(log_path(self._lake, topic.name))
        return ol.Dataset(*place, facets={"schema": _schema(topic.columns)})

    def view(self, table: str) -> ol.Dataset:
        """What people read."""
        return ol.Dataset(self.namespace, f"serve.{table}")

    def rows(self, version: Version) -> ol.Dataset:
        """Where a stored version has its rows."""
        return ol.Dataset(*_place(version.path(self._lake)))

    def ingest(self, topic: Topic, records: int | None) -> tuple[list[ol.Dataset], list[ol.OutputDataset]]:
        """What ingest of a topic reads and writes: `records` of them since the last event."""
        source, log = self.topic(topic.name), self.log(topic)
        keyed = {name: (Source(topic.name, name),) for name, _ in topic.columns}
        known = {topic.name: source}
        return [source], [_output(log, Made(keyed, ()), known, "IDENTITY", records)]

    def version(
        self, version: Version, topics: Mapping[str, Topic]
    ) -> tuple[list[ol.Dataset], list[ol.OutputDataset]]:
        """The logs that a stored version is made of, and its rows."""
        table, made = self._made(version, topics)
        known = {name: self.log(topics[name]) for name in table.inputs}
        output = self.rows(version)
        output.facets = {"schema": _schema([(name, None) for name in table.output])}
        return [*known.values()], [_output(output, made, known, "TRANSFORMATION")]

    def release(
        self, versions: Iterable[Version], topics: Mapping[str, Topic]
    ) -> tuple[list[ol.Dataset], list[ol.OutputDataset]]:
        """What the views of a release show: rows of their versions, or views and logs that they read."""
        inputs, outputs = dict[tuple[str, str], ol.Dataset](), []
        for version in versions:
            table, made = self._made(version, topics)
            if is_stored(table):
                known = {version.table: self.rows(version)}
                made = Made({name: (Source(version.table, name),) for name in table.output}, ())
            else:
                known = {name: self.log(topics[name]) for name in table.inputs}
                known |= {name: self.view(name) for name in table.reads}
            inputs |= {_key(one): one for one in known.values()}
            view = self.view(version.table)
            view.facets = {"schema": _schema([(name, None) for name in table.output])}
            how = "IDENTITY" if is_stored(table) else "TRANSFORMATION"
            outputs.append(_output(view, made, known, how))
        own = set(map(_key, outputs))
        return [one for key, one in inputs.items() if key not in own], outputs

    def event(
        self, state: str, run: str, job: str, processing: str,
        inputs: list[ol.Dataset], outputs: list[ol.OutputDataset], error: str | None = None,
    ) -> ol.RunEvent:  # fmt: skip
        """One event of the run with this id, a UUID, now; `state` is START, RUNNING, COMPLETE, ABORT or
        FAIL."""
        facets: dict[str, Any] = {}
        if error is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(error, "PYTHON")
        kind = job_type_job.JobTypeJobFacet(processing, "TWINLAKE", "JOB")
        return ol.RunEvent(
            eventType=ol.RunState[state], eventTime=datetime.now(UTC).isoformat(timespec="milliseconds"),
            run=ol.Run(run, facets), job=ol.Job(self.namespace, job, {"jobType": kind}), producer=PRODUCER,
            inputs=[ol.InputDataset(one.namespace, one.name, facets=one.facets) for one in inputs],
            outputs=outputs,
        )  # fmt: skip

    def _made(self, version: Version, topics: Mapping[str, Topic]) -> tuple[Kind, Made]:
        return made(self._lake, version, topics)


def _key(dataset: ol.Dataset) -> tuple[str, str]:
    return dataset.namespace, dataset.name


def _place(path: Location) -> tuple[str, str]:
    """Namespace and name of a folder, as OpenLineage names those of files."""
    return (path.store, path.path) if isinstance(path, Remote) else ("file", str(path))


def _schema(fields: Iterable[tuple[str, str | None]]) -> schema_dataset.SchemaDatasetFacet:
    one = schema_dataset.SchemaDatasetFacetFields
    return schema_dataset.SchemaDatasetFacet([one(name=name, type=type_) for name, type_ in fields])


def _output(
    dataset: ol.Dataset, made: Made, known: Mapping[str, ol.Dataset], how: str, rows: int | None = None
) -> ol.OutputDataset:
    fields = {
        name: lineage.Fields([_input(one, known, "DIRECT", how) for one in sources])
        for name, sources in made.columns.items()
    }
    deciding = [_input(one, known, "INDIRECT", "FILTER") for one in made.rows]
    facets = {**(dataset.facets or {}), "columnLineage": lineage.ColumnLineageDatasetFacet(fields, deciding)}
    counted: dict[str, OutputDatasetFacet] = {}
    if rows is not None:
        counts = statistics.OutputStatisticsOutputDatasetFacet(rowCount=rows)
        counted["outputStatistics"] = counts
    return ol.OutputDataset(dataset.namespace, dataset.name, counted, facets=facets)


def _input(
    source: Source, known: Mapping[str, ol.Dataset], kind: str, subtype: str
) -> lineage.InputField:
    dataset, how = known[source.owner], lineage.Transformation(type=kind, subtype=subtype)
    return lineage.InputField(dataset.namespace, dataset.name, source.column, [how])
