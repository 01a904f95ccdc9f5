"""A topic as a version reads it that was made with an earlier schema."""

from __future__ import annotations

from dataclasses import replace

from tests.project import OURS
from twinlake.topics.earlier import as_of_schema
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import load_topic

ORDERS = load_topic("orders", OURS)


def test_an_id_that_was_no_field_then_is_none() -> None:
    then = ORDERS.newest
    key = {"name": "order_key", "type": ["null", "string"], "default": None}
    avro = {**then.avro, "fields": [*then.avro["fields"], key]}
    schema = parse_schema(avro, topic="orders", number=then.number + 1, file="orders.avsc")
    contract = replace(ORDERS.contract, unique="order_key")
    keyed = replace(ORDERS, contract=contract, schemas=(*ORDERS.schemas, schema))

    assert as_of_schema(keyed, then.number).contract.unique is None
    assert as_of_schema(keyed, None).contract.unique == "order_key"
    assert as_of_schema(replace(keyed, contract=ORDERS.contract), then.number).contract.unique == "event_id"
