"""Owns a topic: its name, its contract and its schemas, read together and in agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlake.base.errors import ContractError, NotFoundError
from twinlake.config.project import Project
from twinlake.topics import record_id, record_key
from twinlake.topics.change import REMEDY, breaking
from twinlake.topics.contract import JSON, Contract
from twinlake.topics.contract_file import load_contract, says_json
from twinlake.topics.default_value import default_sql
from twinlake.topics.formats import ENDINGS
from twinlake.topics.schema import FILE_NAME, FORM, Field, Schema, load_schema, parse_schema


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
        fields = tuple((field.name, field.type) for field in self.newest.fields)
        return fields + record_key.columns(self.contract) + record_id.READ

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` is its exact inverse."""
        avro = self.schemas if self.contract.format != JSON else ()  # JSON's is made of the contract
        schemas = [
            {"number": one.number, "file": one.file, "avro": one.avro}
            | ({"source": one.source} if one.source else {})
            for one in avro
        ]
        return {"name": self.name, "contract": self.contract.to_json(), "schemas": schemas}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Topic:
        contract = Contract.from_json(stored["contract"])
        if contract.format == JSON:
            return json_topic(stored["name"], contract)
        schemas = tuple(parse_schema(topic=stored["name"], **one) for one in stored["schemas"])
        return cls(name=stored["name"], contract=contract, schemas=schemas)


def json_topic(name: str, contract: Contract) -> Topic:
    """A topic whose shape is its contract's: a field that a record leaves out is NULL."""
    fields = tuple(
        Field(name=one.name, avro=one.type, type=one.type, nullable=not one.required, has_default=True)
        for one in contract.columns
    )
    shape = Schema(topic=name, number=1, file=contract.file, fields=fields, avro={})
    return Topic(name=name, contract=contract, schemas=(shape,))


def topic_names(*sources: Project) -> tuple[str, ...]:
    """Every topic that has a schema file in one of these projects, or a contract that says JSON."""
    avro = {found["topic"] for found in (FILE_NAME.fullmatch(path.name) for path in _files(sources)) if found}
    json = {path.stem for source in sources for path in source.contracts.glob("*.yaml") if says_json(path)}
    return tuple(sorted(avro | json))


def load_topic(name: str, *sources: Project) -> Topic:
    """The topic of that name in these projects; ContractError when its files are wrong or disagree."""
    found = [path for path in _files(sources) if (m := FILE_NAME.fullmatch(path.name)) and m["topic"] == name]
    if says_json(contract_file(name, *sources)):
        if found:
            why = f"{contract_file(name, *sources)} says that the topic is JSON: the contract is its schema"
            raise ContractError(found[0], "", why, "remove the file")
        return json_topic(name, _topic_contract(name, sources))
    if not found:
        if (file := contract_file(name, *sources)).exists():
            load_contract(file)  # it may be that of a topic in JSON, and wrong
        raise NotFoundError(
            f"there is no topic {name!r}",
            f"there is no schemas/{FORM.replace('<topic>', name).replace('<N>', '1')}, and no "
            f"contracts/{name}.yaml that says format json",
            f"known: {', '.join(topic_names(*sources)) or 'none; `twinlake new topic` makes one'}",
        )
    _refuse_mixed(found)
    schemas = with_earlier_names(sorted(map(load_schema, found), key=lambda schema: schema.number))
    for expected, schema in enumerate(schemas, start=1):
        if schema.number != expected:
            raise ContractError(
                schema.file, "", f"version {expected} of topic {name} is missing", "add the file"
            )
    for schema in schemas:
        refuse_defaults(schema)
    for index, after in enumerate(schemas):
        for before in schemas[:index]:
            _refuse_other_message(before, after)
            if wrong := breaking(before.fields, after):
                raise ContractError(after.file, *wrong, remedy=REMEDY)
    contract = _topic_contract(name, sources)
    _refuse_other_format(contract, schemas[-1])
    topic = Topic(name=name, contract=contract, schemas=schemas)
    if disagreement := contract.disagreement(topic.newest):
        raise ContractError(
            contract.file, *disagreement, remedy="change the contract, or add a schema version"
        )
    return topic


def with_earlier_names(schemas: Sequence[Schema]) -> tuple[Schema, ...]:
    """The same; a field of Protobuf that was called otherwise in an earlier one, by its number, has that name
    among its aliases."""
    names: dict[int, list[str]] = {}
    found = []
    for schema in schemas:
        fields = []
        for field, avro in zip(schema.fields, schema.avro["fields"], strict=True):
            earlier = [] if field.number is None else names.setdefault(field.number, [])
            others = [name for name in earlier if name != field.name]
            fields.append({**avro, "aliases": others[::-1]} if others else avro)
            if field.name not in earlier:
                earlier.append(field.name)
        changed = fields != schema.avro["fields"]
        found.append(
            parse_schema(
                {**schema.avro, "fields": fields}, topic=schema.topic, number=schema.number, file=schema.file,
                source=schema.source,
            )
            if changed else schema
        )  # fmt: skip
    return tuple(found)


def _refuse_mixed(files: list[Path]) -> None:
    """ContractError for schema files of several languages."""
    other = next((path for path in files if path.suffix != files[0].suffix), None)
    if other is not None:
        why = f"{files[0].name} is of another language: a topic's values are all written in one"
        raise ContractError(other, "", why, "remove one of them")


def _refuse_other_message(before: Schema, after: Schema) -> None:
    """ContractError for a later file whose first message has another name: by that one, the message is found
    in what producers register."""
    if before.message != after.message:
        why = f"its first message is {after.message}, and {before.message} in {Path(before.file).name}"
        raise ContractError(after.file, "", why, "let a topic's message keep its name, and be the first one")


def _refuse_other_format(contract: Contract, schema: Schema) -> None:
    """ContractError for a contract that says another format than the schema files are for."""
    if contract.format != schema.format:
        why = f"format is {contract.format}, and {Path(schema.file).name} is of {schema.format}"
        steps = f"say format {schema.format}, or name the file {contract.name}.v1.{ENDINGS[contract.format]}"
        raise ContractError(contract.file, "customProperties", why, steps)


def refuse_defaults(schema: Schema) -> None:
    """ContractError for a default that its field cannot have."""
    for index, field in enumerate(schema.fields):
        try:
            default_sql(field)
            if field.has_default and field.default is None and not field.nullable:
                raise ValueError(f"null is not of type {field.type}: make the type a union with null")
        except ValueError as error:
            raise ContractError(schema.file, schema.place(index, "default"), str(error)) from error


def _topic_contract(name: str, sources: tuple[Project, ...]) -> Contract:
    contract = load_contract(contract_file(name, *sources))
    if not contract.is_topic:
        raise ContractError(
            contract.file, "customProperties", "eventTime is missing", "a topic's contract needs it"
        )
    return contract


def contract_file(name: str, *sources: Project) -> Path:
    """Where the contract of a topic or table is, or should be."""
    files = [source.contracts / f"{name}.yaml" for source in sources]
    return next((file for file in files if file.exists()), files[0])


def _files(sources: tuple[Project, ...]) -> list[Path]:
    return sorted(
        path
        for source in sources
        for ending in ENDINGS.values()
        for path in source.schemas.glob(f"*.{ending}")
    )
