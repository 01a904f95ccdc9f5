"""Refusals: what librdkafka and Java say, told apart from a broker that is just away."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from twinlake.config.login import Login
from twinlake.topics.refusal import QUIET, ErrorCollector, refusal, refusal_in_java

ACCESS = Login(bootstrap_servers="here:1", security="SASL_SSL", username="ann", password="secret")
PLAIN = "Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol"


def test_a_mechanism_that_the_broker_does_not_know_is_told_with_where_it_is_set() -> None:
    told = refusal(KafkaError(KafkaError._AUTHENTICATION, "Unsupported SASL mechanism"), ACCESS)

    assert told is not None
    assert "mechanism into [kafka] of twinlake.toml" in told.remedy


@pytest.mark.parametrize(
    ("code", "text", "what"),
    [
        (KafkaError._AUTHENTICATION, "invalid credentials", "does not let user 'ann' in"),
        (KafkaError._SSL, "certificate verify failed", "no trusted connection to Kafka at here:1"),
        (KafkaError._TRANSPORT, PLAIN, "Kafka at here:1 does not speak SASL_SSL"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed", "user 'ann' may not write it"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "Group authorization failed", "user 'ann' may not write it"),
    ],
)
def test_a_refusal_says_who_was_refused_why_and_what_to_do(code: int, text: str, what: str) -> None:
    told = refusal(KafkaError(code, text), ACCESS, "write it", "WRITE on it")

    assert told is not None
    assert what in told.what
    assert text in told.why
    assert told.remedy and "secret" not in str(told)


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN])
def test_a_broker_that_is_away_refuses_nobody(code: int) -> None:
    assert refusal(KafkaError(code, "Connection refused"), ACCESS) is None


def test_what_a_broker_that_ends_makes_a_client_say_is_believed_when_time_is_up() -> None:
    collector = ErrorCollector(ACCESS)
    collector(
        KafkaError(
            KafkaError._AUTHENTICATION, "SaslAuthenticateRequest failed: Local: Broker transport failure"
        )
    )

    assert collector.refusal() is None
    assert collector.refusal(time_is_up=True) is not None


def test_who_was_let_in_was_not_refused() -> None:
    collector = ErrorCollector(ACCESS)
    collector(KafkaError(KafkaError._AUTHENTICATION, "invalid credentials"))
    refused_before = collector.refusal()
    collector.forget()

    assert refused_before is not None
    assert collector.refusal(time_is_up=True) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("org.apache.kafka.common.errors.SaslAuthenticationException: bad", "does not let user 'ann' in"),
        (
            "x\norg.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed\n",
            "no trusted",
        ),
        ("errors.TopicAuthorizationException: Not authorized to access topics: [o]", "may not read it"),
    ],
)
def test_java_refuses_in_the_same_words(text: str, what: str) -> None:
    told = refusal_in_java(f"Job aborted: {text}", ACCESS, "read it", "READ on it")

    assert told is not None and what in told.what


def test_other_errors_of_java_are_no_refusals() -> None:
    assert refusal_in_java("java.lang.IllegalStateException: offset gone", ACCESS, "", "") is None


@pytest.mark.parametrize("options", [{}, QUIET])
def test_librdkafka_writes_no_line_of_its_own(
    options: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    producer = Producer({**options, "bootstrap.servers": "127.0.0.1:1", "debug": "all", "log_level": 7})

    producer.poll(0.5)

    assert ("rdkafka#producer" in capfd.readouterr().err) != bool(options)
