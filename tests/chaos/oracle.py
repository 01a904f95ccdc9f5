"""At the end: plain Python over what Kafka has committed, against the log, every table and the changelogs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from deltalake import DeltaTable

from tests.changelog.reader import Reader, table_of
from tests.chaos import invariants
from tests.chaos.plan import TABLES
from tests.chaos.tables import without_cancelled
from tests.chaos.traffic import NUMBER, Traffic
from tests.chaos.work import LATEST_CHANGES, SALES_CHANGES
from tests.chaos.world import TOPIC, World
from tests.oracle.check import check
from tests.oracle.judge import Judged, judge, writer_schemas
from tests.oracle.mended import Mended, judge_mended
from tests.oracle.shown import Door, SqlDoor, distinct
from tests.oracle.topic import Records
from twinlake.lake.catalog.certificates import Certificates

Shown = dict[Any, Any]
Event = dict[str, Any]
CHANGELOGS = {"sales_per_region": SALES_CHANGES, "latest_order": LATEST_CHANGES}
MANY = 1_000
GAP_MS, BEFORE_MS, AFTER_MS, MINUTE_MS = 300_000, 30_000, 60_000, 60_000


@dataclass(frozen=True, kw_only=True)
class Committed:
    records: Records
    numbers: Counter[int]


def committed(world: World, ends: dict[str, int]) -> Committed:
    """Every committed record of the topic, and how often each sending is in it."""
    records, numbers = Records(), Counter[int]()
    consumer = Consumer({
        **world.server.broker.login.client(), "group.id": "chaos", "isolation.level": "read_committed",
        "enable.auto.commit": False, "log_level": 0,
    })  # fmt: skip
    try:
        places = [TopicPartition(TOPIC, int(number), OFFSET_BEGINNING) for number in ends]
        consumer.assign(places)
        while any(place.offset < ends[str(place.partition)] for place in consumer.position(places)):
            for message in consumer.consume(10_000, 2):
                assert message.error() is None, message.error()
                records.partitions.append(message.partition() or 0)
                records.offsets.append(message.offset() or 0)
                records.timestamps_ms.append(message.timestamp()[1])
                records.keys.append(message.key())
                records.values.append(message.value())
                numbers[int(dict(message.headers() or ())[NUMBER] or 0)] += 1
    finally:
        consumer.close()
    return Committed(records=records, numbers=numbers)


def wrong(world: World, traffic: Traffic, mended: Mended | None, tag: int) -> Iterator[str]:
    """What is not as it must be, one line each."""
    found = committed(world, world.ends(committed=True))
    yield from _sendings(found.numbers, traffic)
    yield from _log(world, found.records)
    services = world.server.services
    door = SqlDoor(world.sql.url, world.sql.services.sql_user, world.sql.services.sql_password)
    told = check(
        kafka=world.server.broker.login.client(), registry_url=services.registry_url, door=door,
        without_cancelled=without_cancelled(tag), mended=mended, say=world.journal.say,
    )  # fmt: skip
    for name, one in told["tables"].items():
        if not one["equal"]:
            yield f"table {name}: {one['examples']}"[:1500]
    schemas = writer_schemas(services.registry_url, f"{TOPIC}-value")
    judged = judge_mended(found.records, schemas, mended) if mended else judge(found.records, schemas)
    events = list(_events(found.records, judged))
    for name, (expected, shown) in _tables(events, door, tag).items():
        yield from _difference(f"table {name}", expected, shown)
    kept = {one["table"]: one["topic"] for one in world.server.client.status()["changelogs"]}
    if kept != CHANGELOGS:
        yield f"changelogs: {kept}"
    for table, topic in CHANGELOGS.items():
        yield from _changelog(world, table, topic, events, tag)
    (many,) = door.rows("SELECT count(*) AS quarantined FROM serve.orders_quarantine")
    certificates = Certificates(world.server.lake)
    made = [one for table in TABLES for one in certificates.of(table, MANY)]
    yield from invariants.broken(
        world.server.lake, TOPIC, found.records.partitions, many["quarantined"], made
    )


def _sendings(numbers: Counter[int], traffic: Traffic) -> Iterator[str]:
    """By Kafka's own word: what the test takes for sent is there once, what it gave up is not."""
    for what, many in (
        ("taken and not in Kafka", traffic.taken - numbers.keys()),
        ("given up and in Kafka", traffic.given_up & numbers.keys()),
        ("in Kafka twice", {number for number, times in numbers.items() if times > 1}),
    ):
        if many:
            yield f"{len(many)} records {what}: {sorted(many)[:5]}"


def _log(world: World, records: Records) -> Iterator[str]:
    """Lost are coordinates that the log lacks; doubled are those that it has twice."""
    names = ["epoch", "partition", "offset", "replay"]
    rows = DeltaTable(str(world.server.lake / "logs" / TOPIC)).to_pyarrow_table(columns=names)
    columns = [rows.column(name).to_pylist() for name in names]
    held = Counter((p, o) for e, p, o, replay in zip(*columns, strict=True) if not replay)
    wanted = set(zip(records.partitions, records.offsets, strict=True))
    lost, doubled = len(wanted - held.keys()), sum(times - 1 for times in held.values())
    invented = len(held.keys() - wanted)
    world.journal.counts |= Counter({"records in the log": len(held)})
    world.journal.say(f"log: {len(held):,} of {len(wanted):,} records, lost {lost}, doubled {doubled}")
    if lost or doubled or invented:
        yield f"log: lost {lost}, doubled {doubled}, invented {invented}"


def _events(records: Records, judged: Judged) -> Iterator[Event]:
    names = list(judged.columns)
    for at, row in enumerate(judged.rows):
        event = {name: judged.columns[name][at] for name in names}
        yield {**event, "place": (records.partitions[row], records.offsets[row])}


def _money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _difference(what: str, expected: Shown, shown: Shown) -> Iterator[str]:
    keys = [
        key for key in expected.keys() | shown.keys() if expected.get(key, ...) != shown.get(key, ...)
    ]  # fmt: skip
    if keys:
        some = {key: (expected.get(key), shown.get(key)) for key in keys[:3]}
        yield f"{what}: {len(keys)} of {len(expected)} keys differ (expected, shown): {some}"[:1500]


def _tables(events: list[Event], door: Door, tag: int) -> dict[str, tuple[Shown, Shown]]:
    totals = door.rows("SELECT region, tag, cast(spent AS string) spent, records, buyers FROM serve.totals")
    visits = door.rows(
        "SELECT customer, tag, unix_millis(session_start) a, unix_millis(session_end) z, "
        "cast(spent AS string) spent, records FROM serve.visits"
    )
    near = door.rows(
        "SELECT _left_partition lp, _left_offset lo, _right_partition rp, _right_offset ro, "
        "cast(asked AS string) asked, cast(undone AS string) undone FROM serve.near"
    )
    gap = door.rows("SELECT region, records, missing FROM serve.gap")
    return {
        "totals": (_totals(events, tag), distinct(
            ((one["region"], one["tag"]), (Decimal(one["spent"]), one["records"], one["buyers"]))
            for one in totals
        )),
        "visits": (_visits(events, tag), distinct(
            ((one["customer"], one["tag"], one["a"]), (one["z"], Decimal(one["spent"]), one["records"]))
            for one in visits
        )),
        "asked": (_stored(events, "pending", 10_000), _shown(door, "asked")),
        "cancelled": (_stored(events, "cancelled", 15_000), _shown(door, "cancelled")),
        "near": (_near(events), distinct(
            (((one["lp"], one["lo"]), None if one["rp"] is None else (one["rp"], one["ro"])), (
                Decimal(one["asked"]), None if one["undone"] is None else Decimal(one["undone"])
            )) for one in near
        )),
        "gap": (_gap(events, tag), distinct(
            (one["region"], (one["records"], one["missing"])) for one in gap
        )),
    }  # fmt: skip


def _shown(door: Door, table: str) -> Shown:
    rows = door.rows(
        "SELECT _partition p, _offset o, region, customer, cast(amount AS string) amount, "
        f"unix_millis(ordered_at) at FROM serve.{table}"
    )
    return distinct(
        ((one["p"], one["o"]), (one["region"], one["customer"], Decimal(one["amount"]), one["at"]))
        for one in rows
    )


def _stored(events: list[Event], status: str, above: int) -> Shown:
    return {
        one["place"]: (one["region"], one["customer"], _money(one["amount"]), one["ordered_at"])
        for one in events
        if one["status"] == status and one["amount"] > above
    }


def _by(events: list[Event], name: str) -> dict[Any, list[Event]]:
    groups: dict[Any, list[Event]] = defaultdict(list)
    for one in events:
        groups[one[name]].append(one)
    return groups


def _totals(events: list[Event], tag: int) -> Shown:
    found = {}
    for region, held in _by(events, "region").items():
        buyers = {one["customer"] for one in held}
        spent = _money(sum(one["amount"] for one in held))
        found[region, tag] = (spent, len(held), len(buyers))
    return found


def _visits(events: list[Event], tag: int) -> Shown:
    found: Shown = {}
    for customer, held in _by(events, "customer").items():
        held.sort(key=lambda one: one["ordered_at"])
        visit: list[Event] = []
        for one in [*held, None]:
            if visit and (one is None or one["ordered_at"] - visit[-1]["ordered_at"] > GAP_MS):
                spent = _money(sum(each["amount"] for each in visit))
                key = (customer, tag, visit[0]["ordered_at"])
                found[key] = (visit[-1]["ordered_at"], spent, len(visit))
                visit = []
            visit += [one] if one else []
    return found


def _near(events: list[Event]) -> Shown:
    undone = _by([e for e in events if e["status"] == "cancelled" and e["amount"] > 15_000], "customer")
    found: Shown = {}
    for left in events:
        if left["status"] != "pending" or left["amount"] <= 10_000:
            continue
        asked, met = _money(left["amount"]), False
        for right in undone.get(left["customer"], []):
            if -BEFORE_MS <= right["ordered_at"] - left["ordered_at"] <= AFTER_MS:
                found[left["place"], right["place"]] = (asked, _money(right["amount"]))
                met = True
        if not met:
            found[left["place"], None] = (asked, None)
    return found


def _gap(events: list[Event], tag: int) -> Shown:
    found = {}
    for region, held in _by(events, "region").items():
        left_out = sum(one["status"] == "cancelled" for one in held) if without_cancelled(tag) else 0
        found[region] = (len(held), left_out)
    return found


def _changelog(world: World, table: str, topic: str, events: list[Event], tag: int) -> Iterator[str]:
    reader = Reader(world.server.broker.login, world.server.services.registry_url, topic)
    positions = [(one["release"], one["pin"]["position"][TOPIC]) for one in reader.positions()]
    for of, at in (("releases", 0), ("positions", 1)):
        if [one[at] for one in positions] != sorted(one[at] for one in positions):
            yield f"changelog {topic}: {of} go back"
    told = reader.records()
    world.journal.say(f"changelog {topic}: {len(told):,} records, {len(positions)} positions")
    try:
        rows = table_of(told)
    except KeyError as error:
        yield f"changelog {topic}: it deletes {error}, which it has not told"
        return
    of_table: Callable[[], tuple[Shown, Shown]] = {
        "sales_per_region": lambda: (_sales(events, tag), {
            (key[0], _millis(key[1])): tuple(row[name] for name in SALES) for key, row in rows.items()
        }),
        "latest_order": lambda: (_latest(events), {
            key[0]: (row["order_id"], row["status"], row["amount"]) for key, row in rows.items()
        }),
    }[table]  # fmt: skip
    yield from _difference(f"changelog {topic}", *of_table())


SALES = ("sales", "orders", "smallest", "largest", "customers")


def _millis(moment: Any) -> int:
    return round(moment.timestamp() * 1000)


def _sales(events: list[Event], tag: int) -> Shown:
    groups: dict[Any, list[Event]] = defaultdict(list)
    for one in events:
        if not (without_cancelled(tag) and one["status"] == "cancelled"):
            groups[one["region"], one["ordered_at"] // MINUTE_MS * MINUTE_MS].append(one)
    return {
        key: (
            _money(sum(one["amount"] for one in held)), len(held), _money(min(one["amount"] for one in held)),
            _money(max(one["amount"] for one in held)), len({one["customer"] for one in held}),
        )
        for key, held in groups.items()
    }  # fmt: skip


def _latest(events: list[Event]) -> Shown:
    ordered = sorted(events, key=lambda one: (one["ordered_at"], one["place"]))
    return {one["customer"]: (one["order_id"], one["status"], _money(one["amount"])) for one in ordered}
