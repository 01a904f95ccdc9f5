"""What happens when: drawn whole from one seed, before anything is started."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Literal

Lane = Literal["traffic", "work", "fault"]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SENDINGS = ("plain", "plain", "commit", "commit", "abort", "left open")
VICTIMS = ("lake", "lake's Python", "lake's JVM", "SQL server", "SQL server's JVM", "broker")
FROZEN = ("lake", "SQL server", "broker")
TABLES = (
    "orders",
    "sales_per_region",
    "latest_order",
    "totals",
    "visits",
    "asked",
    "cancelled",
    "near",
    "gap",
)
STORED = ("sales_per_region", "latest_order", "totals", "visits", "asked", "cancelled")
AT_LEAST = {"kills": 10, "promotions": 3, "rollbacks": 2, "replays": 2, "full disks": 1, "records": 100_000}
"""Of each quarter of an hour."""
BURSTS_A_MINUTE, BURST = 10, 1_200
QUARTER = 15


@dataclass(frozen=True, kw_only=True)
class Event:
    """`at` is in seconds since the plan began; one that is late happens at once."""

    at: float
    lane: Lane
    what: str
    params: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.what, *(f"{name}={value}" for name, value in self.params.items())])


def least(minutes: float) -> dict[str, int]:
    """What a run of so many minutes must hold."""
    return {name: max(1, round(count * minutes / QUARTER)) for name, count in AT_LEAST.items()}


def drawn(seed: int, minutes: float) -> list[Event]:
    """The events of all lanes, oldest first: all that a run of so many minutes must hold, and more."""
    draw = random.Random(seed)
    seconds = minutes * 60
    events = [*_traffic(draw, minutes), *_work(draw, seconds, minutes), *_faults(draw, seconds, minutes)]
    return sorted(events, key=lambda event: event.at)


def _traffic(draw: random.Random, minutes: float) -> list[Event]:
    """A fifth more than must be committed, for a kill makes a sending fail; as many bursts are given up."""
    bursts = max(1, round(minutes * BURSTS_A_MINUTE))
    few, many = BURST * 6 // 10, BURST * 14 // 10
    sendings = [SENDINGS[number % len(SENDINGS)] for number in range(bursts)]
    draw.shuffle(sendings)
    return [
        Event(
            at=60 * minutes * (number + draw.random()) / bursts, lane="traffic", what="send",
            params={
                "how": how, "codec": draw.choice(CODECS), "seed": draw.randrange(2**31),
                "count": draw.randint(few, many) if how in ("plain", "commit") else 300,
            },
        )
        for number, how in enumerate(sendings)
    ]  # fmt: skip


def _work(draw: random.Random, seconds: float, minutes: float) -> list[Event]:
    """The contract is mended once, and judged again with it; everything else comes in any order."""
    wanted = least(minutes)
    many = max(1, round(minutes / 3))
    drawn = ["promote"] * wanted["promotions"] + ["rollback"] * wanted["rollbacks"] + ["changelog"]
    for what in ("verify", "rebuild"):
        drawn += [what] * many
    for what in ("maintain", "retire"):
        drawn += [what] * max(1, many // 3)
    draw.shuffle(drawn)
    drawn.insert(0, drawn.pop(drawn.index("promote")))  # before the first there is nothing to go back to
    first = draw.randint(1, max(1, len(drawn) // 2))
    drawn.insert(first, "mend and replay")
    for _ in range(wanted["replays"] - 1):
        drawn.insert(draw.randint(first + 1, len(drawn)), "replay")
    events = []
    for number, what in enumerate(drawn):
        params: dict[str, Any] = {}
        if what == "verify":
            params = {"table": draw.choice(TABLES)}
        elif what == "rebuild":
            params = {"table": draw.choice(STORED)}
        elif what == "retire":
            params = {"keep": 2}
        events.append(Event(at=seconds * number / len(drawn), lane="work", what=what, params=params))
    return events


def _faults(draw: random.Random, seconds: float, minutes: float) -> list[Event]:
    wanted = least(minutes)
    kills = [VICTIMS[number % len(VICTIMS)] for number in range(wanted["kills"])]
    faults = [("kill", {"victim": victim, "down_s": draw.choice((0, 0, 5))}) for victim in kills]
    for number in range(max(1, round(minutes / 5))):
        faults.append(("freeze", {"victim": FROZEN[number % len(FROZEN)], "seconds": draw.randint(3, 12)}))
    faults += [("full disk", {"seconds": draw.randint(5, 15)})] * wanted["full disks"]
    draw.shuffle(faults)
    return [
        Event(
            at=seconds * (number + draw.uniform(0.2, 0.8)) / len(faults),
            lane="fault",
            what=what,
            params=params,
        )
        for number, (what, params) in enumerate(faults)
    ]
