import json
import socket
from pathlib import Path

import pytest

from twinlake.base.errors import UsageError
from twinlake.services.ports import HOST, NAMES, Ports, free_port


def test_ports_are_chosen_once_and_all_differ(tmp_path: Path) -> None:
    first = Ports(tmp_path / "ports.json")

    again = Ports(tmp_path / "ports.json")

    assert [again[name] for name in NAMES] == [first[name] for name in NAMES]
    assert len({first[name] for name in NAMES}) == len(NAMES)


def test_a_port_is_never_one_that_outgoing_connections_get() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())

    assert not any(first <= free_port() <= last for _ in range(20))


def test_only_the_port_that_a_stranger_holds_is_chosen_again(tmp_path: Path) -> None:
    ports = Ports(tmp_path / "ports.json")
    before = {name: ports[name] for name in NAMES}
    with socket.socket() as stranger:
        stranger.bind((HOST, ports["broker"]))
        stranger.listen()

        taken = ports.renew_taken(["broker", "controller"])

    assert taken == ["broker"]
    assert ports["broker"] != before["broker"]
    assert {**{name: ports[name] for name in NAMES}, "broker": before["broker"]} == before
    assert Ports(tmp_path / "ports.json")["broker"] == ports["broker"]


def test_a_port_that_somebody_has_fixed_is_taken_and_written_down(tmp_path: Path) -> None:
    before = Ports(tmp_path / "ports.json")

    found = Ports(tmp_path / "ports.json", {"jdbc": before["sql"], "lake": 4711})

    assert (found["jdbc"], found["lake"], found["broker"]) == (before["sql"], 4711, before["broker"])
    assert len({found[name] for name in NAMES}) == len(NAMES), "the one that had it got another"
    assert json.loads((tmp_path / "ports.json").read_text()) == {name: found[name] for name in NAMES}


def test_a_fixed_port_that_a_stranger_holds_is_refused_and_not_chosen_again(tmp_path: Path) -> None:
    with socket.socket() as stranger:
        stranger.bind((HOST, 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        ports = Ports(tmp_path / "ports.json", {"jdbc": port})

        with pytest.raises(UsageError, match=f"port {port} is taken") as refused:
            ports.renew_taken(["sql", "jdbc"])

    assert ports["jdbc"] == port and "[ports] jdbc" in refused.value.why
