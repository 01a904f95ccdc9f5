"""Sequences of records for the gallery's topics: one module per example, and the only list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from twinlake.config.settings import GALLERY
from twinlake.topics.gallery import (
    cards,
    clicks,
    devices,
    inventory,
    parcels,
    shop,
    trades,
    trucks,
    users,
    words,
)
from twinlake.topics.gallery.sequence import Sequence, Story
from twinlake.topics.topic import load_topic

EXAMPLES: Mapping[str, Mapping[str, Callable[[Random], Story]]] = {
    "trades": trades.STORIES,
    "words": words.STORIES,
    "cards": cards.STORIES,
    "users": users.STORIES,
    "trucks": trucks.STORIES,
    "inventory": inventory.STORIES,
    "clicks": clicks.STORIES,
    "parcels": parcels.STORIES,
    "devices": devices.STORIES,
    "shop": shop.STORIES,
}
"""Example -> topic -> what happens there."""


def sequence(example: str, topic: str, *, seed: int, run: str, schema_id: int, span_ms: int = 0) -> Sequence:
    """The endless sequence of a topic's records; `schema_id` is what the registry calls its schema."""
    story = EXAMPLES[example][topic](Random(f"{seed}/{topic}/story"))
    loaded = load_topic(topic, GALLERY / example)
    return Sequence(topic=loaded, story=story, seed=seed, run=run, schema_id=schema_id, span_ms=span_ms)
