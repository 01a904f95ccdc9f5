"""A project of its own whose tables a test defines: the real topic's files, and a contract for each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tests.project import PROJECT
from tests.releases.lake import Lake, following_sql_server

LOGICAL = {
    "string": "string", "bigint": "integer", "int": "integer", "double": "number", "decimal(12,2)": "number",
    "decimal(38,2)": "number",
    "timestamp": "timestamp", "boolean": "boolean",
}  # fmt: skip
CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: {name}
name: {name}
version: 1.0.0
status: active
description: {{purpose: A table of the tests.}}
schema:
  - name: {name}
    properties:
"""


def project_of(folder: Path, promised: Mapping[str, Mapping[str, str]]) -> Path:
    """The folder, with what is promised of each table: its columns and their Spark types."""
    for name in ("schemas/orders.v1.avsc", "contracts/orders.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((PROJECT / name).read_text())
    (folder / "twinlake.toml").write_text("[project]\n")
    for name, columns in promised.items():
        lines = [
            f"      - {{name: {column}, logicalType: {LOGICAL[type_]}, physicalType: '{type_}'}}\n"
            for column, type_ in columns.items()
        ]
        (folder / "contracts" / f"{name}.yaml").write_text(CONTRACT.format(name=name) + "".join(lines))
    return folder


@contextmanager
def promised_lake(
    spark: SparkSession, folder: Path, promised: Mapping[str, Mapping[str, str]]
) -> Iterator[Lake]:
    """A lake server over such a project, until the end."""
    with following_sql_server(folder / "home" / "lake") as sql_url:
        made = Lake(spark, folder / "home", sql_url, project_of(folder / "project", promised))
        try:
            yield made
        finally:
            made.stop()
