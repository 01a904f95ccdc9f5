"""Destination: a changelog's topics, that of its positions too, and the one producer that may write them.

A transaction holds the records of one step from position to position, and the new position. So a reader of
committed records that has read the position has read all that led to it, and nothing beyond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import DeniedError, DifferenceError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.changelog.position import Position
from twinlake.changelog.target import COMPACTED, Made, Record, Target
from twinlake.config.login import Login
from twinlake.topics.kafka import Kafka, KafkaTopic
from twinlake.topics.refusal import QUIET, RIGHTS, refusal

ANSWER_S = 30.0
GROUPS = "twinlake-changelog"
"""The consumer group, or how its name begins; nothing is committed to it."""
TRANSACTION_MS = 900_000
"""The longest that a broker allows by default: the first fill is one transaction, too."""
NAMED_OTHERWISE = (
    "name a topic that begins with `changelog.` where Twinlake runs the broker itself; elsewhere have "
    "somebody who administers the cluster give it what docs/security.md names, on all its topics"
)
Header = tuple[str, str | bytes | None]
_ANY = -1


@contextmanager
def _naming_all_rights() -> Iterator[None]:
    """Where one right is missing, others are, too."""
    try:
        yield
    except DeniedError as error:
        if RIGHTS not in error.facts:
            raise
        raise DeniedError(error.what, error.why, NAMED_OTHERWISE, error.facts) from error


class Destination:
    """Ready after `open`. After any error: `close` it, and open it again, which reads what was committed."""

    def __init__(self, login: Login, target: Target, table: str, lake_id: str) -> None:
        self.target = target
        self.made: dict[str, Made] = {}
        self.kafka = Kafka(login)
        self._table = table
        self._lake_id = lake_id
        self._producer: Producer | None = None

    @_naming_all_rights()
    def refuse_foreign(self) -> None:
        """UsageError for topics that are there and cannot be this changelog's."""
        for name in self.target.names:
            if self.kafka.topic(name):
                self._refuse_policy(name)
        positions = self.kafka.topic(self.target.positions)
        if positions and len(positions.partitions) != 1:
            raise UsageError(
                f"topic {self.target.positions!r} has {len(positions.partitions)} partitions",
                "positions have an order in one partition only", "name another topic",
            )  # fmt: skip
        sent = self._position() if positions else None
        self._refuse_others(sent)
        for name in self.target.topics:
            if found := self.kafka.topic(name):
                self._refuse_filled(sent, found)
                self._refuse_more_partitions(sent, found)

    @_naming_all_rights()
    def open(self) -> Position | None:
        """Make the topics, fence whoever sent before, then read what was sent last; None before the first.

        In this order: what a fenced producer was about to commit is committed or aborted by then.
        """
        target = self.target
        for name in target.topics:
            if not self.kafka.create(name, target.partitions, target.config):
                self._refuse_policy(name)
        if not self.kafka.create(target.positions, partitions=1, config=COMPACTED):
            self._refuse_policy(target.positions)
        *there, _ = map(self._known, target.names)
        self.made = {one.name: _made(one) for one in there}
        producer = Producer(
            {
                **QUIET,
                **self.kafka.login.client(),
                "transactional.id": f"twinlake-{self._lake_id}-{self._table}",
                "transaction.timeout.ms": TRANSACTION_MS,
                "partitioner": "murmur2_random",
                "compression.type": "lz4",
                "linger.ms": 5,
            }
        )
        try:
            producer.init_transactions(ANSWER_S)
        except KafkaException as error:
            raise self._failed(error) from error
        self._producer = producer
        sent = self._position()
        self._refuse_others(sent)
        for one in there:
            self._refuse_more_partitions(sent, one)
        return sent

    def has_sent_none(self, sent: Position) -> bool:
        """Whether the open topics never had a record, and are those of the position."""
        return all(
            sent.made(name) == made and not any(self.kafka.ends(name, range(made.partitions)).values())
            for name, made in self.made.items()
        )

    @_naming_all_rights()
    def send(self, records: Iterable[Record], headers: Mapping[str, str], position: Position) -> int:
        """All records and the position in one transaction; how many records that were.

        UnreachableError when it is not known to be committed, or when a topic is no longer the one that was
        opened: `open` tells what was committed, and to which.
        """
        assert self._producer is not None, "it is not open"
        common = _headers(headers)
        at = Record(topic=self.target.positions, key=self._table.encode(), value=position.to_bytes())
        sent = 0
        try:
            self._producer.begin_transaction()
            for record in records:
                self._produce(record, common)
                sent += 1
            self._produce(at, common)
            self._producer.flush(ANSWER_S)  # so that what is left to do is the commit
            self._refuse_other_topics()
            breakpoints.at(Point.BEFORE_CHANGES, self._table)
            self._producer.commit_transaction(ANSWER_S)
            breakpoints.at(Point.AFTER_CHANGES, self._table)
        except KafkaException as error:
            raise self._failed(error) from error
        return sent

    def close(self) -> None:
        """Forget the producer; what it has not committed is aborted, now or by the next `open`."""
        if self._producer is not None:
            with suppress(KafkaException):  # the next one fences it
                self._producer.abort_transaction(1.0)
            self._producer = None

    def _known(self, name: str) -> KafkaTopic:
        """The topic, once the broker and the leaders of its partitions know it: not at once of one that was
        just made."""

        def known() -> KafkaTopic | None:
            found = self.kafka.topic(name)
            return found if found and found.partitions and self.kafka.ends(name, found.partitions) else None

        return wait_for(f"Kafka to know topic {name}", known, ANSWER_S, unready=(UnreachableError,))

    def _produce(self, record: Record, common: list[Header]) -> None:
        assert self._producer is not None
        headers = common + _headers(record.headers) if record.headers else common
        partition = _ANY if record.partition is None else record.partition
        while True:
            try:
                self._producer.produce(record.topic, record.value, record.key, partition, headers=headers)
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def _position(self) -> Position | None:
        """The newest committed one."""
        consumer = Consumer(
            {
                **QUIET, **self.kafka.login.client(), "group.id": GROUPS,
                "isolation.level": "read_committed", "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )  # fmt: skip
        newest: bytes | None = None
        try:
            consumer.assign([TopicPartition(self.target.positions, 0, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(ANSWER_S)
                if message is None:
                    raise self._unreachable(f"no answer from {self.target.positions} in {ANSWER_S:g} s")
                if (error := message.error()) is None:
                    newest = message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    return None if newest is None else Position.from_bytes(newest)
                elif refused := self._refusal(error):
                    raise refused
                elif not error.retriable():
                    raise self._unreachable(error.str())
        except ValueError as error:
            raise UsageError(
                f"topic {self.target.positions!r} holds something else than positions", str(error),
                "name another topic",
            ) from error  # fmt: skip
        finally:
            consumer.close()

    def _refuse_policy(self, name: str) -> None:
        policy = self.kafka.setting(name, "cleanup.policy") or ""
        if not self.target.has_events or name == self.target.positions:
            if policy != "compact":
                raise UsageError(
                    f"topic {name!r} has cleanup.policy={policy}",
                    "a changelog is complete only in a topic that keeps the newest record of every key",
                    "name another topic, or set its cleanup.policy to compact",
                )
        elif "compact" in policy:
            raise UsageError(
                f"topic {name!r} has cleanup.policy={policy}",
                "Kafka deletes all events of a key but the newest in a topic that is compacted",
                "name another topic, or set its cleanup.policy to delete",
            )

    def _refuse_others(self, sent: Position | None) -> None:
        if sent is None:
            return
        if (sent.lake, sent.table) != (self._lake_id, self._table):
            mine = "this lake" if sent.lake == self._lake_id else f"another lake ({sent.lake})"
            raise DifferenceError(
                f"topic {self.target.shown!r} is not a changelog of {self._table}",
                f"it was sent from table {sent.table} of {mine}", "name another topic",
            )  # fmt: skip
        if (sent.events is not None) != self.target.has_events:
            raise DifferenceError(
                f"topic {self.target.shown!r} is not a changelog of {self._table}",
                f"{self.target.positions!r} says that {'events' if sent.events else 'changes of rows'} were "
                "sent; the table has changed its kind since",
                "name another topic",
            )

    def _refuse_filled(self, sent: Position | None, found: KafkaTopic) -> None:
        if sent is not None and sent.made(found.name) is not None:
            return
        if self.kafka.ends(found.name, found.partitions) != self.kafka.begins(found.name, found.partitions):
            raise UsageError(
                f"topic {found.name!r} has records already",
                f"{self.target.positions!r} does not tell that they are a changelog's",
                "name a topic that is empty, or not there",
            )

    def _refuse_other_topics(self) -> None:
        """To a topic that somebody has recreated only what changed would have been sent."""
        for name, made in self.made.items():
            found = self.kafka.topic(name)
            if found is None or _made(found) != made:
                raise self._unreachable(
                    f"the topic {name} was deleted, recreated or given partitions in the meantime"
                )

    def _refuse_more_partitions(self, sent: Position | None, found: KafkaTopic) -> None:
        had, has = sent and sent.made(found.name), _made(found)
        if self.target.keyed and had and had.id == has.id and had.partitions != has.partitions:
            raise DifferenceError(
                f"topic {found.name!r} has {has.partitions} partitions",
                f"it had {had.partitions} when its records were sent, so a key may have "
                "records in two of them now",
                "stop the changelog and start one to another topic",
            )

    def _failed(self, error: KafkaException) -> TwinlakeError:
        if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return UsageError(
                f"a row of {self._table} is too large for {self.target.shown}", error.args[0].str(),
                "leave its large columns out of the table, and read them by queries",
            )  # fmt: skip
        return self._refusal(error.args[0]) or self._unreachable(error.args[0].str())

    def _refusal(self, error: KafkaError) -> DeniedError | None:
        return refusal(
            error, self.kafka.login, f"send the changelog of {self._table} to {self.target.shown}",
            f"WRITE and READ on {', '.join(self.target.names)}, WRITE on transactional ids and READ "
            "on groups that begin with twinlake-",
        )  # fmt: skip

    def _unreachable(self, why: str) -> UnreachableError:
        return UnreachableError(
            f"the changelog of {self._table} was not sent to {self.target.shown}", why,
            "nothing, if the broker comes back: it is tried again by itself; see `twinlake logs broker`",
        )  # fmt: skip


def _made(found: KafkaTopic) -> Made:
    return Made(id=found.id, partitions=len(found.partitions))


def _headers(texts: Mapping[str, str]) -> list[Header]:
    return [(name, text.encode()) for name, text in texts.items()]
