"""Addresses: their parts, whether they stay on this machine, whether anybody is there."""

from __future__ import annotations

import socket

import pytest

from twinlake.base.address import connection_error, host_and_port, is_loopback


@pytest.mark.parametrize(
    ("server", "parts"),
    [("kafka-1:9093", ("kafka-1", 9093)), (" [::1]:80 ", ("::1", 80)), ("10.0.0.1:1", ("10.0.0.1", 1))],
)
def test_an_address_has_a_host_and_a_port(server: str, parts: tuple[str, int]) -> None:
    assert host_and_port(server) == parts


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.0.9", "::1", "[::1]"])
def test_what_stays_on_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["127.example.com", "localhost.example.com", "10.0.0.1", "::2", "", "registry"]
)
def test_what_leaves_it(host: str) -> None:
    """A name may begin as a loopback address does."""
    assert not is_loopback(host)


def test_nobody_there_is_told_with_the_system_s_reason() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{bound.getsockname()[1]}"
        assert connection_error(server, 2) == "Connection refused"
        bound.listen()
        assert connection_error(server, 2) == ""
    assert "invalid literal" in connection_error("nobody", 2)
