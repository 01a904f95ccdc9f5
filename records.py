"""Realistic orders: an endless sequence fixed by its seed, with faults where they are asked for.

Every property of a record is drawn from a random stream of its own, one number per record, so the sequence
does not depend on how many records are asked for at a time. Only the event times follow the clock.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from twinlake.base.errors import UnreachableError
from twinlake.topics.records import Draw, Wanted
from twinlake.topics.wire import Column, ascii_texts, decimals, frames, longs, texts

CUSTOMERS = 100_000
REGIONS = (
    "andalusia", "bavaria", "bohemia", "brittany", "catalonia", "flanders", "île-de-france", "jutland",
    "lombardy", "lower-saxony", "mazovia", "normandy", "occitanie", "piedmont", "saxony", "scania",
    "sicily", "silesia", "tyrol", "zeeland",
)  # fmt: skip
STATUSES = ("paid", "pending", "cancelled")
STATUS_SHARES = (0.70, 0.18, 0.12)
HOME_SHARE = 0.9
FIRST_ORDER_ID = 1_000_000
REMEMBERED = 50_000  # how far back a duplicate may reach, in records
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
FIELDS = ("event_id", "order_id", "customer", "region", "status", "amount", "ordered_at")

_STREAMS = (
    "customer", "home", "region", "status", "amount", "amount_angle", "fault", "fault_kind", "lag", "source"
)  # fmt: skip
_FAULTS = ("duplicate", "undecodable", "rule_broken", "late", "too_late")
_RULES = ("negative_amount", "unknown_status", "empty_region", "empty_customer", "event_ahead")
_WORDS_STATUS = (*STATUSES, "refunded")
_WORDS_REGION = (*REGIONS, "")


@dataclass(frozen=True, kw_only=True)
class FaultShares:
    """Which part of the records is wrong, and how; the shares are of all records."""

    duplicate: float = 0.03
    undecodable: float = 0.0025
    rule_broken: float = 0.0025
    late: float = 0.02
    too_late: float = 0.0001


@dataclass(kw_only=True)
class Sample:
    """The sequence of orders of one (seed, run); `draw` continues where it stopped.

    `run` tells two sequences of one seed apart by their event ids and by nothing else.
    """

    seed: int
    run: str
    schema_id: int
    span_ms: int = 0
    faults: FaultShares | None = None
    remembered: int = REMEMBERED
    _position: int = field(default=0, init=False)
    _recent: list[tuple[bytes, bytes | None]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        seeds = np.random.SeedSequence(self.seed).spawn(len(_STREAMS))
        self._streams = {
            name: np.random.Generator(np.random.PCG64(child))
            for name, child in zip(_STREAMS, seeds, strict=True)
        }
        weights = 1.0 / np.arange(1, CUSTOMERS + 1)
        self._customers = np.cumsum(weights / weights.sum())
        self._home = np.random.Generator(np.random.PCG64(20)).integers(0, len(REGIONS), CUSTOMERS)
        self._keys = [f"customer-{number:06d}".encode() for number in range(1, CUSTOMERS + 1)] + [b""]
        digest = hashlib.blake2b(f"{self.seed}/{self.run}".encode(), digest_size=8).digest()
        self._run_bytes = np.frombuffer(digest, dtype=np.uint8)

    def draw(self, count: int, now_ms: int) -> Draw:
        """The next `count` records as if they happened around (or, with a span, up to) `now_ms`."""
        uniform = {name: stream.random(count) for name, stream in self._streams.items()}
        kind = self._fault_kinds(uniform["fault"])
        rule = np.where(kind == 2, (uniform["fault_kind"] * len(_RULES)).astype(np.int64), -1)
        customers = np.searchsorted(self._customers, uniform["customer"]).clip(0, CUSTOMERS - 1)
        home = self._home[customers]
        elsewhere = (uniform["region"] * len(REGIONS)).astype(np.int64)
        regions = np.where(uniform["home"] < HOME_SHARE, home, elsewhere)
        statuses = np.searchsorted(np.cumsum(STATUS_SHARES)[:-1], uniform["status"], side="right")
        cents = _amounts(uniform["amount"], uniform["amount_angle"])

        cents = np.where(rule == 0, -cents, cents)
        statuses = np.where(rule == 1, len(STATUSES), statuses)
        regions = np.where(rule == 2, len(REGIONS), regions)
        customers = np.where(rule == 3, CUSTOMERS, customers)
        lag = self._lags(kind, rule, uniform["lag"])

        numbers = np.arange(self._position, self._position + count, dtype=np.uint64)
        encoded: list[bytes | None] = list(
            frames(
                self.schema_id,
                [
                    ascii_texts(_uuids(self._run_bytes, numbers)),
                    longs(numbers.astype(np.int64) + FIRST_ORDER_ID),
                    _customer_column(customers),
                    texts(_WORDS_REGION, regions),
                    texts(_WORDS_STATUS, statuses),
                    decimals(cents),
                    longs(now_ms - lag),
                ],
            )
        )
        keys = [self._keys[customer] for customer in customers.tolist()]
        for row in np.flatnonzero(kind == 1).tolist():
            encoded[row] = _damaged(encoded[row] or b"", float(uniform["fault_kind"][row]))
        self._repeat(keys, encoded, kind, uniform["source"])
        self._position += count
        return Draw(keys=keys, values=encoded, faults=_counts(kind))

    def _fault_kinds(self, uniform: np.ndarray) -> np.ndarray:
        """Per record the index into the list of faults, or -1 for none."""
        if self.faults is None:
            return np.full(uniform.shape, -1)
        shares = [getattr(self.faults, name) for name in _FAULTS]
        kind = np.searchsorted(np.cumsum(shares), uniform, side="right")
        kind = np.where(kind == len(_FAULTS), -1, kind)
        if self._position == 0 and kind.size and kind[0] == 0:
            kind[0] = -1  # the first record has nothing to repeat
        return kind

    def _lags(self, kind: np.ndarray, rule: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """How long before `now_ms` each record's event happened, in milliseconds."""
        usual = uniform * self.span_ms if self.span_ms else -2_000.0 * np.log1p(-uniform)
        lag = np.where(kind == 3, 3 * HOUR_MS + 60_000 + uniform * (3 * HOUR_MS - 120_000), usual)
        lag = np.where(kind == 4, 21 * DAY_MS + HOUR_MS + uniform * 9 * DAY_MS, lag)
        lag = np.where(rule == 4, -(10 * 60_000 + uniform * HOUR_MS), lag)
        return lag.astype(np.int64)

    def _repeat(
        self, keys: list[bytes], values: list[bytes | None], kind: np.ndarray, uniform: np.ndarray
    ) -> None:
        """Put an earlier record, key and bytes, instead of each one chosen as a duplicate."""
        start = len(self._recent)
        for row in np.flatnonzero(kind == 0).tolist():
            reach = min(self._position + row, self.remembered)
            back = 1 + int(uniform[row] * reach)
            source = row - back
            keys[row], values[row] = (
                (keys[source], values[source]) if source >= 0 else self._recent[start + source]
            )
        self._recent.extend(zip(keys, values, strict=True))
        if len(self._recent) > 2 * self.remembered:
            del self._recent[: -self.remembered]


def _amounts(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Log-normal order amounts in cents, 0.01 to 99,999.99, by the Box-Muller transform."""
    normal = np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second)
    cents: np.ndarray = np.clip(np.exp(3.6 + 0.9 * normal) * 100.0, 1, 9_999_999).astype(np.int64)
    return cents


def _customer_column(customers: np.ndarray) -> Column:
    """The customer names, made from their numbers; number `CUSTOMERS` stands for the empty name."""
    digits = ((customers + 1)[:, None] // 10 ** np.arange(5, -1, -1)) % 10
    prefix = np.broadcast_to(np.frombuffer(b"customer-", dtype=np.uint8), (customers.shape[0], 9))
    named = ascii_texts(np.concatenate([prefix, (digits + ord("0")).astype(np.uint8)], axis=1))
    nameless = customers == CUSTOMERS
    data = named.data.copy()
    data[nameless, 0] = 0
    return Column(data=data, used=np.where(nameless, 1, named.used))


_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint8).reshape(256, 2)
_UUID_LETTERS = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])


def _uuids(run: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Ids in the form of UUIDs: eight bytes for the run, eight for the mixed (so distinct) number."""
    with np.errstate(over="ignore"):
        mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    low = mixed.astype(">u8").view(np.uint8).reshape(-1, 8)
    raw = np.concatenate([np.broadcast_to(run, low.shape), low], axis=1)
    letters = np.full((numbers.shape[0], 36), ord("-"), dtype=np.uint8)
    letters[:, _UUID_LETTERS] = _HEX[raw].reshape(-1, 32)
    return letters


def _damaged(frame: bytes, uniform: float) -> bytes | None:
    """Bytes that are no order: one of many ways to damage a good frame, chosen by `uniform` in [0, 1)."""
    text = frame[7:43].decode("ascii", "replace")
    ways: tuple[bytes | None, ...] = (
        frame[:-3],
        frame + b"\x00",
        frame[:4],
        b"",
        None,
        b"\x01" + frame[1:],
        b"\x00\x7f\xff\xff\xff" + frame[5:],
        b"\x00" * len(frame),
        f'{{"event_id": "{text}", "amount": 1}}'.encode(),
        frame[:5] + b"\x08\xff\xfe\xfd\xfc" + frame[42:],
        frame[:5] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + frame[5:],
        hashlib.blake2b(frame, digest_size=48).digest(),
    )
    return ways[int(uniform * len(ways))]


def _counts(kind: np.ndarray) -> dict[str, int]:
    return {name: int((kind == number).sum()) for number, name in enumerate(_FAULTS)}


def orders(wanted: Wanted) -> Sample:
    """Orders of 100,000 customers with Zipf weights in 20 regions, keyed by customer."""
    return Sample(
        seed=wanted.seed, run=wanted.run, schema_id=_schema_id(wanted), span_ms=wanted.span_ms,
        faults=FaultShares() if wanted.faults else None,
        remembered=min(REMEMBERED, int(wanted.rate * 1800) + 1) if wanted.rate else REMEMBERED,
    )  # fmt: skip


def _schema_id(wanted: Wanted) -> int:
    """The id under which the schema that the samples are written in is registered."""
    for schema_id, schema in wanted.schemas.items():
        if tuple(one["name"] for one in schema["fields"]) == FIELDS:
            return schema_id
    raise UnreachableError(
        what=f"the registry knows no schema of {wanted.topic.name}-value with the fields of the samples",
        why=f"none of its versions has exactly {', '.join(FIELDS)}",
        remedy="run `twinlake up`, which registers schemas/orders.v1.avsc",
    )


SOURCES = {"orders": orders}
