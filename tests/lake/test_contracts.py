"""By which contract the batches of a log were validated stays known, also where a log begins again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.project import OURS
from twinlake.lake.log import contracts
from twinlake.topics.topic import load_topic

ORDERS = load_topic("orders", OURS)
STRICTER = replace(ORDERS, contract=replace(ORDERS.contract, rules=ORDERS.contract.rules[:1]))


def known(lake: Path) -> list[tuple[int, int]]:
    """Of each era the batch that it begins after, and how many rules its contract has."""
    return [(era.after, len(era.contract["rules"])) for era in contracts.eras(lake, "orders")]


def test_an_era_begins_where_another_contract_does(tmp_path: Path) -> None:
    for topic, after in ((ORDERS, 0), (ORDERS, 7), (STRICTER, 9), (STRICTER, 12)):
        contracts.begin(tmp_path, topic, after)

    assert known(tmp_path) == [(0, len(ORDERS.contract.rules)), (9, 1)]


def test_a_log_that_was_put_back_is_validated_by_the_contract_of_now_from_there(tmp_path: Path) -> None:
    """The contract is that of the last era, whose batches are gone: the new ones are not of the first era."""
    for topic, after in ((ORDERS, 0), (STRICTER, 9), (STRICTER, 3)):
        contracts.begin(tmp_path, topic, after)

    assert known(tmp_path) == [(0, len(ORDERS.contract.rules)), (3, 1)]


def test_a_contract_that_was_taken_back_before_a_batch_was_validated_by_it_is_no_era(tmp_path: Path) -> None:
    for topic in (ORDERS, STRICTER, ORDERS):
        contracts.begin(tmp_path, topic, 4)

    assert known(tmp_path) == [(4, len(ORDERS.contract.rules))]
