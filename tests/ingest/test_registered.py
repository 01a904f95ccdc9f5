"""Schemas of other languages than Avro on the registry that `twinlake up` starts."""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference

from tests.apicurio import Apicurio
from tests.ingest import framed
from tests.ingest.test_protobuf import THING, message, proto, serializer_for
from tests.registry import confluent_client
from twinlake.base.errors import ContractError, DifferenceError
from twinlake.topics.protobuf_schema import inner
from twinlake.topics.registered import is_same
from twinlake.topics.registering import register
from twinlake.topics.registry import Registry

pytestmark = pytest.mark.services
NUMBERS = itertools.count(1)
AT = {"type": "string", "format": "date-time"}


def document(**properties: Any) -> dict[str, Any]:
    return {
        "schemaType": "JSON",
        "schema": {
            "type": "object", "properties": {"at": AT, **properties}, "required": ["at"],
            "additionalProperties": False,
        },
    }  # fmt: skip


@pytest.fixture
def name() -> str:
    return f"things_{os.getpid()}_{next(NUMBERS)}"  # the registry is of all workers


@pytest.mark.parametrize(
    "said",
    [
        [proto(THING)], [document(a={"type": "string"})],
        [
            proto(message("int32 a = 2", "string gone = 4")),
            proto(message("int32 a = 2", "string new = 5", "reserved 4", 'reserved "gone"')),
        ],
        [document(a={"type": "string"}), document(a={"type": "string"}, b={"type": "integer"})],
    ],
)  # fmt: skip
def test_files_are_registered_once_and_read_as_they_were(
    apicurio: Apicurio, name: str, said: list[dict[str, Any]]
) -> None:
    topic, registry = framed.read_by(name, *said), Registry(apicurio.url)

    register(registry, topic)
    register(registry, topic)

    found = list(registry.schemas(f"{name}-value").values())
    assert len(found) == len(said)
    assert all(is_same(one, other) for one, other in zip(found, said, strict=True))
    assert [registry.schema(number) for number in registry.schemas(f"{name}-value")] == found


def test_what_a_serializer_has_registered_compiled_is_the_file_s_schema(
    apicurio: Apicurio, name: str
) -> None:
    serializer_for(apicurio.url, name, THING)(text="x")
    registry = Registry(apicurio.url)

    register(registry, framed.read_by(name, proto(THING)))

    assert len(registry.schemas(f"{name}-value")) == 1


def test_what_a_schema_refers_to_is_fetched(apicurio: Apicurio, name: str) -> None:
    client, registry = confluent_client(apicurio.url), Registry(apicurio.url)
    zone = f'syntax = "proto3"; message Zone{name} {{ string code = 1; }}'
    client.register_schema(f"{name}/zone.proto", Schema(zone, "PROTOBUF"))
    address = f'syntax = "proto3"; import "zone.proto"; message Address {{ Zone{name} zone = 1; }}'
    to_zone = SchemaReference("zone.proto", f"{name}/zone.proto", 1)
    client.register_schema(f"{name}/address.proto", Schema(address, "PROTOBUF", [to_zone]))
    thing = message("Address address = 2").replace('proto3";', 'proto3"; import "address.proto";')
    to_address = SchemaReference("address.proto", f"{name}/address.proto", 1)
    client.register_schema(f"{name}-value", Schema(thing, "PROTOBUF", [to_address]))

    (said,) = registry.schemas(f"{name}-value").values()

    assert sorted(said["imports"]) == ["address.proto", "zone.proto"]
    fields = inner(said["schema"], said["imports"], "").avro["fields"]
    assert [one["name"] for one in fields] == ["at", "address"]


@pytest.mark.parametrize(
    ("said", "more"),
    [
        (proto(message("int32 a = 2")), proto(message("string a = 2"))),
        (proto(message("int32 a = 2")), proto(message("int32 renamed = 2"))),
        (proto(message("int32 a = 2", "int32 b = 3")), proto(message("int32 b = 3"))),
        (document(a={"type": "string"}), document(a={"type": "integer"})),
    ],
)
def test_a_schema_that_cannot_read_what_is_there_is_refused(
    apicurio: Apicurio, name: str, said: dict[str, Any], more: dict[str, Any]
) -> None:
    registry = Registry(apicurio.url)
    register(registry, framed.read_by(name, said))

    with pytest.raises((ContractError, DifferenceError)):
        register(registry, framed.read_by(name, said, more))

    assert len(registry.schemas(f"{name}-value")) == 1
