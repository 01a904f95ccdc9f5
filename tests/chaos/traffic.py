"""Sends the bursts of a plan, and keeps what became of each record: taken, given up, or nobody knows."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, Producer

from tests.chaos.hostile import burst
from tests.chaos.world import TOPIC, Journal

NUMBER = "number"
"""The header that tells a record: the number of its sending."""
OPEN_MS = 8_000
"""After so long the broker ends a transaction that nobody ends."""
ANSWER_S = 120.0


@dataclass(kw_only=True)
class Traffic:
    servers: dict[str, str]
    journal: Journal
    taken: set[int] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    sent: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Who holds it has the topic stand still."""

    def send(self, how: str, codec: str, seed: int, count: int) -> None:
        with self.turn:
            self._send(how, codec, burst(seed, count))

    def _send(self, how: str, codec: str, records: list[tuple[bytes | None, bytes | None]]) -> None:
        options: dict[str, Any] = {
            **self.servers, "compression.type": codec, "log_level": 0, "linger.ms": 20, "acks": "all",
            "enable.idempotence": True, "delivery.timeout.ms": 120_000, "partitioner": "murmur2_random",
        }  # fmt: skip
        if how != "plain":
            options |= {
                "transactional.id": f"chaos-{self.sent}", "transaction.timeout.ms": OPEN_MS,
                "delivery.timeout.ms": OPEN_MS,
            }  # fmt: skip
        numbers = range(self.sent, self.sent + len(records))
        self.sent += len(records)
        delivered: set[int] = set()
        refused: list[str] = []
        producer = Producer(options)
        try:
            if how != "plain":
                producer.init_transactions(ANSWER_S)
                producer.begin_transaction()
            for number, (key, value) in zip(numbers, records, strict=True):

                def told(error: Any, message: Any, number: int = number) -> None:
                    refused.append(str(error)) if error else delivered.add(number)

                producer.produce(
                    TOPIC, value, key, headers={NUMBER: str(number).encode()}, on_delivery=told
                )  # fmt: skip
                producer.poll(0)
            producer.flush(ANSWER_S)
            self._end(producer, how, set(numbers), delivered)
        except KafkaException as error:  # a transaction whose broker died for too long
            self.unknown |= set(numbers)
            self.journal.say(
                f"{how} of {len(records)}: {error.args[0]}"[:300], "sendings that were lost track of"
            )
        if refused:
            self.journal.say(f"{len(refused)} of {len(records)} records refused: {refused[0]}"[:300])

    def _end(self, producer: Producer, how: str, numbers: set[int], delivered: set[int]) -> None:
        if how == "plain":
            self.taken |= delivered
            self.unknown |= numbers - delivered
        elif how == "commit":
            producer.commit_transaction(ANSWER_S)
            self.taken |= numbers
        else:
            self.given_up |= numbers
            if how == "abort":
                producer.abort_transaction(ANSWER_S)
