"""Schemas that change at random moments between random producers, and a registry that gives new ids: tables
made with any of them show every record by their own names.
"""

from __future__ import annotations

import random

import pytest

from tests.ingest.fed import Fed, renamed
from tests.ingest.stage import Stage, frame
from tests.ingest.test_evolution import AT, MOMENT, read_with
from tests.ingest.test_living_versions import BY_ONE, BY_THREE, BY_TWO, ONE, SENT, SHOWN, THREE, TWO, tables
from tests.registry import FakeRegistry
from twinlake.kinds.kind import is_stored

BY = {1: BY_ONE, 2: BY_TWO, 3: BY_THREE}
RESTORED = {1: 1000, 2: 2000, 3: 3000}
"""The id that a restored registry gives each schema; too far apart for the next free id to be one of them."""


@pytest.mark.faults
@pytest.mark.usefixtures("way")
def test_every_table_shows_every_record_that_its_topic_can_read(faked: Stage, seed: int) -> None:
    drawn = random.Random(seed)
    renamed(faked)
    faked.create(partitions=2)
    feds: dict[int, Fed] = {}
    sent: dict[str, int] = {}

    def send(number: int) -> None:
        avro, values = SENT[number - 1]
        plain = {**avro, "fields": [{**one, "type": "long"} if one is AT else one for one in avro["fields"]]}
        schema_id = faked.registry.register(faked.subject, avro)
        assert isinstance(faked.registry, FakeRegistry)
        if drawn.random() < 0.3:
            schema_id = RESTORED[number]
            if schema_id not in [known for known, _ in faked.registry.subjects[faked.subject]]:
                faked.registry.add(faked.subject, schema_id, avro)
        id_ = f"r{len(sent):02}"
        sent[id_] = number
        faked.produce(frame(schema_id, plain, {"at": MOMENT, "id": id_, **values}), partition=len(sent) % 2)

    for active, schemas in ((1, (ONE,)), (2, (ONE, TWO)), (3, (ONE, TWO, THREE))):
        read_with(faked, *schemas)
        newest = tables(faked.topic.name, SHOWN[active][0])["newest"]
        assert is_stored(newest)
        feds[active] = Fed(faked, newest, made_with=active)
        for _ in range(drawn.randint(1, 2)):
            for _ in range(drawn.randint(1, 5)):
                send(drawn.choice((1, 2, 3)))
            for fed in feds.values():
                fed.run()
            for by, fed in feds.items():
                expected = {(id_, *BY[by][number - 1]) for id_, number in sent.items() if number <= active}
                assert {row[: len(SHOWN[by][0]) + 1] for row in fed.shows()} == expected, (active, by)
