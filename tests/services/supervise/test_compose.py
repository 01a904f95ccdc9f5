"""The form of docker-compose.yml: there is no Docker where these tests run."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.broker import free_port
from tests.project import OURS
from twinlake.base.errors import UsageError
from twinlake.config.settings import Settings
from twinlake.services.all import all_parts
from twinlake.services.ports import HOST, NAMES
from twinlake.services.supervise import containers, control

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
    return found


def test_it_has_every_part_under_its_own_name(compose: dict[str, Any]) -> None:
    steps = {"prepare": ["prepare"], "release": []}

    commands = {name: service["command"] for name, service in compose["services"].items()}

    assert commands == {**steps, **{part.name: ["run", part.name] for part in all_parts()}}


def test_every_part_that_keeps_running_has_a_health_check_of_its_own(compose: dict[str, Any]) -> None:
    for part in all_parts():
        if part.command is not None:
            test = compose["services"][part.name]["healthcheck"]["test"]
            program = "twinlake.services.supervise.containers"
            assert test == ["CMD", "python", "-m", program, "probe", part.name]


def test_every_part_starts_after_what_it_needs(compose: dict[str, Any]) -> None:
    def before(name: str) -> set[str]:
        direct = set(compose["services"][name].get("depends_on", {}))
        return direct.union(*(before(other) for other in direct))

    for part in all_parts():
        assert set(part.needs) <= before(part.name)


def test_nothing_is_published_beyond_loopback(compose: dict[str, Any]) -> None:
    assert HOST == "127.0.0.1"
    for name, service in compose["services"].items():
        assert "ports" not in service, name
        assert service["network_mode"] == "host", name
    assert sorted(containers.PORTS) == sorted(NAMES)


def test_the_sql_server_sees_the_lake_read_only_and_no_secret(compose: dict[str, Any]) -> None:
    sql = compose["services"]["sql"]

    assert sql["volumes"] == ["lake:/state/lake:ro", "access:/state/access:ro"]  # the latter has a hash
    assert sql["user"].split(":")[0] not in ("0", "root")


def test_versions_are_pinned(compose: dict[str, Any]) -> None:
    images = {service["image"] for service in compose["services"].values()}
    base = re.search(r"^FROM (\S+)", (PROJECT / "infra" / "images" / "Dockerfile").read_text(), re.MULTILINE)

    assert images == {"twinlake:0.1.0"}
    assert base is not None
    assert re.fullmatch(r"python:3\.1[123]\.\d+-slim-bookworm", base.group(1))


def test_volumes_that_are_used_are_declared(compose: dict[str, Any]) -> None:
    used = {volume.split(":")[0] for one in compose["services"].values() for volume in one["volumes"]}

    assert {volume for volume in used if not volume.startswith("./")} == set(compose["volumes"])


def test_what_is_edited_is_seen_where_it_is_read(compose: dict[str, Any]) -> None:
    """Nothing of it is only in the image, where an edit would need a new one."""
    edited = {"jobs/tables", "contracts", "schemas", "dags"}

    for name, service in compose["services"].items():
        if name != "sql":  # it reads what is in force in the lake
            assert {f"./{folder}:/twinlake/{folder}:ro" for folder in edited} <= set(service["volumes"]), name
    assert all((PROJECT / folder).is_dir() for folder in edited)


def test_somebody_waits_for_the_end_of_whatever_ends(compose: dict[str, Any]) -> None:
    """`docker compose up --wait` takes every other end for a failure."""
    waited = {
        name
        for service in compose["services"].values()
        for name, on in service.get("depends_on", {}).items()
        if on["condition"] == "service_completed_successfully"
    }

    assert waited == {name for name, one in compose["services"].items() if "healthcheck" not in one}


def test_in_containers_status_asks_every_part_and_up_and_down_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path, in_project=OURS)
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    free = {name: free_port() for name in containers.PORTS}
    monkeypatch.setattr(containers, "PORTS", free)

    containers.main(["prepare"])

    parts = control.describe(settings)
    assert [part["part"] for part in parts] == [part.name for part in all_parts() if part.command]
    assert {(part["state"], part["answers"]) for part in parts} == {("not ready", False)}
    with pytest.raises(UsageError, match="run in containers"):
        list(control.bring_up(settings, all_parts(), os.environ, print))
    with pytest.raises(UsageError, match="run in containers"):
        control.bring_down(settings, lambda name: None)


def test_what_is_given_is_refused_in_containers_before_any_part_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    (tmp_path / "twinlake.toml").write_text('[kafka]\nbootstrap_servers = "k:9092"\n')

    with pytest.raises(SystemExit, match="names a broker"):
        containers.main(["prepare"])

    assert not (tmp_path / "services.json").exists()
