"""Owns a topic: its name, its contract and its schemas, read together and in agreement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from jobs.errors import ContractError, NotFoundError
from jobs.settings import PROJECT
from jobs.topics import coordinate
from jobs.topics.contract import Contract
from jobs.topics.contract_file import load_contract
from jobs.topics.schema import FILE_NAME, Schema, load_schema, parse_schema, type_change


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A Kafka topic as this project knows it; `schemas` is ordered, the newest last."""

    name: str
    contract: Contract
    schemas: tuple[Schema, ...]

    @property
    def newest(self) -> Schema:
        """The reader schema: every row is shown with its fields and defaults."""
        return self.schemas[-1]

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """(name, Spark type) of every column of the rows that definitions read."""
        return tuple((field.name, field.type) for field in self.newest.fields) + coordinate.READ

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` is its exact inverse."""
        schemas = [{"number": one.number, "file": one.file, "avro": one.avro} for one in self.schemas]
        return {"name": self.name, "contract": self.contract.to_json(), "schemas": schemas}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Topic:
        schemas = tuple(parse_schema(topic=stored["name"], **one) for one in stored["schemas"])
        return cls(name=stored["name"], contract=Contract.from_json(stored["contract"]), schemas=schemas)


def topic_names(*sources: Path) -> tuple[str, ...]:
    """Every topic that has a schema file in one of these folders (without any, in the project)."""
    return tuple(
        sorted({f["topic"] for f in (FILE_NAME.fullmatch(path.name) for path in _files(sources)) if f})
    )


def load_topic(name: str, *sources: Path) -> Topic:
    """The topic of that name in these folders; ContractError when its files are wrong or disagree."""
    found = [path for path in _files(sources) if (m := FILE_NAME.fullmatch(path.name)) and m["topic"] == name]
    if not found:
        raise NotFoundError(
            f"there is no topic {name!r}",
            f"there is no schemas/{name}.v1.avsc",
            "known: " + ", ".join(topic_names(*sources)),
        )
    schemas = tuple(sorted(map(load_schema, found), key=lambda schema: schema.number))
    for expected, schema in enumerate(schemas, start=1):
        if schema.number != expected:
            raise ContractError(
                schema.file, "", f"version {expected} of topic {name} is missing", "add the file"
            )
    for before, after in pairwise(schemas):
        for index, field in enumerate(after.fields):
            known = before.field(field.name)
            if known and (changed := type_change(known, field)):
                remedy = "give the new type a field of its own"
                raise ContractError(after.file, f"fields[{index}].type", changed, remedy)
    contract = load_contract(contract_file(name, *sources))
    if not contract.is_topic:
        raise ContractError(
            contract.file, "customProperties", "eventTime is missing", "a topic's contract needs it"
        )
    topic = Topic(name=name, contract=contract, schemas=schemas)
    if disagreement := contract.disagreement(topic.newest):
        raise ContractError(
            contract.file, *disagreement, remedy="change the contract, or add a schema version"
        )
    return topic


def contract_file(name: str, *sources: Path) -> Path:
    """Where the contract of a topic or table is, or should be."""
    files = [source / "contracts" / f"{name}.yaml" for source in sources or (PROJECT,)]
    return next((file for file in files if file.exists()), files[0])


def _files(sources: tuple[Path, ...]) -> list[Path]:
    return sorted(path for source in sources or (PROJECT,) for path in (source / "schemas").glob("*.avsc"))
