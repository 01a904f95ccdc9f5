"""Sends records to a topic, as fast as the broker takes them or at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

from confluent_kafka import KafkaError, KafkaException, Producer

from twinlake.base.errors import DeniedError, TwinlakeError, UnreachableError
from twinlake.config.login import Login
from twinlake.topics.records import Draw, Source
from twinlake.topics.refusal import QUIET, ErrorCollector, metadata, refusal, unusable

CHUNK = 10_000
TICK_SECONDS = 0.05
FIRST_ANSWER_SECONDS = 15.0
FLUSH_SECONDS = 1.0
DELIVERY_SECONDS = 180.0
SETTINGS: dict[str, object] = {
    "acks": "all",
    "enable.idempotence": True,
    "partitioner": "murmur2_random",
    "compression.type": "lz4",
    "batch.num.messages": 20_000,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 200_000,
    "delivery.timeout.ms": int(DELIVERY_SECONDS * 1000),
    "delivery.report.only.error": True,
    "reconnect.backoff.max.ms": 1_000,
}


@dataclass(kw_only=True)
class Sent:
    """What has been handed to the broker so far, and what it has acknowledged once `seconds` is final."""

    sent: int = 0
    acknowledged: int = 0
    seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)

    @property
    def per_second(self) -> float:
        return self.sent / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The two clocks a producer needs: the wall's for event times, the steady one for the rate."""

    wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    steady: Callable[[], float] = time.monotonic


def produce(
    source: Source,
    *,
    login: Login,
    topic: str,
    count: int | None,
    rate: float | None,
    stop: Event,
    report: Callable[[Sent], None],
    clock: Clock | None = None,
) -> Sent:
    """Send `count` records (None: until `stop` is set), at most `rate` a second (None: full speed).

    Every record that was sent is acknowledged by all replicas when this returns; otherwise it raises
    UnreachableError (no broker), DeniedError (it does not let this client in, or not write), or TwinlakeError
    (records refused), saying how many were not taken.
    """
    clock = clock or Clock()
    failures: list[KafkaError] = []
    collector = ErrorCollector(login, *_writing(topic))
    producer = _connect(collector, topic, linger_ms=5 if rate else 20)
    sent = Sent()

    def refuse() -> None:
        if refused := collector.refusal():
            lost = f": {len(producer):,} of {sent.sent:,} records are not acknowledged" if sent.sent else ""
            raise DeniedError(refused.what + lost, refused.why, refused.remedy, refused.facts)
        _raise_on_failures(failures, login, topic, sent)

    started = clock.steady()
    with _telling(collector, topic):
        while not stop.is_set() and (count is None or sent.sent < count):
            due = CHUNK if rate is None else int((clock.steady() - started) * rate) + 1 - sent.sent
            due = min(due, CHUNK, CHUNK if count is None else count - sent.sent)
            if due > 0:
                drawn = source.draw(due, clock.wall_ms())
                _enqueue(producer, topic, drawn, failures, refuse)
                sent.sent += due
                for fault, number in drawn.faults.items():
                    sent.faults[fault] = sent.faults.get(fault, 0) + number
            if rate is not None:
                producer.poll(TICK_SECONDS)
                stop.wait(max(0.0, TICK_SECONDS - (clock.steady() - started) % TICK_SECONDS))
            sent.seconds = clock.steady() - started
            refuse()
            report(sent)
        until = time.monotonic() + DELIVERY_SECONDS
        while (unconfirmed := producer.flush(FLUSH_SECONDS)) and time.monotonic() < until:
            refuse()
    sent.seconds = clock.steady() - started
    refuse()
    if unconfirmed:
        if refused := collector.refusal(time_is_up=True):
            raise refused
        raise UnreachableError(
            what=f"{unconfirmed:,} of {sent.sent:,} records to topic {topic!r} were not acknowledged",
            why=f"the broker at {login.bootstrap_servers} did not answer within {DELIVERY_SECONDS:.0f} s",
            remedy="run `twinlake status`, bring the broker back with `twinlake up`, then produce again",
        )
    sent.acknowledged = sent.sent
    report(sent)
    return sent


def _connect(collector: ErrorCollector, topic: str, linger_ms: int) -> Producer:
    options = {
        **QUIET, **SETTINGS, **collector.login.client(), "linger.ms": linger_ms, "error_cb": collector,
    }  # fmt: skip
    try:
        producer = Producer(options)
    except KafkaException as error:
        raise unusable(error, collector.login) from error
    try:
        known = metadata(producer, collector, topic, FIRST_ANSWER_SECONDS).topics[topic]
    except KafkaException as error:
        raise _no_right(error.args[0], collector.login, topic) or UnreachableError(
            what=f"no answer from the broker at {collector.login.bootstrap_servers}",
            why=collector.last or error.args[0].str(),
            remedy="start the services with `twinlake up`",
        ) from error
    if known.error is not None:
        raise _no_right(known.error, collector.login, topic) or TwinlakeError(
            what=f"topic {topic!r} cannot be written",
            why=known.error.str(),
            remedy="create the topic with `twinlake up`",
        )
    return producer


def _no_right(error: KafkaError, login: Login, topic: str) -> TwinlakeError | None:
    return refusal(error, login, *_writing(topic))


def _writing(topic: str) -> tuple[str, str]:
    """What a producer does, and the rights that takes."""
    return f"write topic {topic!r}", f"WRITE and DESCRIBE on topic {topic}"


@contextmanager
def _telling(collector: ErrorCollector, topic: str) -> Iterator[None]:
    """What librdkafka cannot get over it raises from any call, and never sends again."""
    try:
        yield
    except (KafkaException, SystemError) as error:
        # confluent-kafka may call the next callback with the error set; of that Python makes a SystemError
        cause = error if isinstance(error, KafkaException) else error.__cause__
        if not isinstance(cause, KafkaException):
            raise
        collector.refuse()
        raise _no_right(cause.args[0], collector.login, topic) or TwinlakeError(
            f"no more records can be sent to topic {topic!r}", cause.args[0].str(),
            "see `twinlake logs broker`, then produce again; ids do not repeat",
        ) from error  # fmt: skip


def _enqueue(
    producer: Producer, topic: str, drawn: Draw, failures: list[KafkaError], refuse: Callable[[], None]
) -> None:
    """Hand over all records in order; wait whenever librdkafka's queue is full."""

    def refused(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failures.append(error)

    for key, value in zip(drawn.keys, drawn.values, strict=True):
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=refused)
                break
            except BufferError:
                producer.poll(0.1)
                refuse()
            except KafkaException:
                producer.poll(0)  # raises what is behind it
                raise
    producer.poll(0)


def _raise_on_failures(failures: list[KafkaError], login: Login, topic: str, sent: Sent) -> None:
    if failures:
        if refused := _no_right(failures[0], login, topic):
            raise refused
        raise TwinlakeError(
            what=f"the broker did not take {len(failures):,} of {sent.sent:,} records to topic {topic!r}",
            why=failures[0].str(),
            remedy="run `twinlake status` and `twinlake logs broker`, then produce again; ids do not repeat",
        )
