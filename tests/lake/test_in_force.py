"""What the lake tells readers of a topic is exactly what the lake server works with."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.project import OURS
from twinlake.base.errors import NotFoundError
from twinlake.lake.log.active_topics import active_topic, publish, published
from twinlake.topics.contract import Rule
from twinlake.topics.topic import Topic, load_topic, topic_names


@pytest.mark.parametrize("name", topic_names(OURS))
def test_a_reader_finds_the_topic_as_it_was_published(tmp_path: Path, name: str) -> None:
    publish(tmp_path, load_topic(name, OURS))

    assert active_topic(tmp_path, name) == load_topic(name, OURS)


def test_every_sort_of_rule_and_of_duration_survives_as_json() -> None:
    rules = tuple(
        Rule(column="a", code=code, value=value)
        for code, value in (
            ("missing", None), ("below_minimum", Decimal("0.10")), ("above_maximum", Decimal("1e20")),
            ("too_long", 7), ("not_allowed", ("x", "y")),
        )
    )  # fmt: skip
    topic = load_topic("orders", OURS)
    odd = replace(topic.contract, rules=rules, late_after=timedelta(microseconds=1), unique_within=None)
    topic = replace(topic, contract=odd)

    again = Topic.from_json(json.loads(json.dumps(topic.to_json())))

    assert again == topic and again.contract.fingerprint == topic.contract.fingerprint
    assert [type(rule.value) for rule in again.contract.rules] == [type(rule.value) for rule in rules]


def test_only_what_is_new_is_told_anew(tmp_path: Path) -> None:
    topic = load_topic("orders", OURS)
    publish(tmp_path, topic)
    before = published(tmp_path)

    publish(tmp_path, topic)
    same = published(tmp_path)
    publish(tmp_path, replace(topic, contract=replace(topic.contract, late_after=timedelta(hours=4))))

    assert same == before and published(tmp_path) != before
    assert active_topic(tmp_path, "orders").contract.late_after == timedelta(hours=4)


def test_a_topic_that_was_never_opened_is_named_with_what_to_do(tmp_path: Path) -> None:
    assert published(tmp_path) == {}
    with pytest.raises(NotFoundError, match="topic orders") as raised:
        active_topic(tmp_path, "orders")

    assert "start the lake server" in raised.value.remedy
