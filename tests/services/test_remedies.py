"""What errors of files and settings say to do is done, and all is well."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.services.test_external import FakeAirflow, configured, wrong
from tests.unopened import make_live
from twinlake.base.errors import BusyError, FormatError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.times import utc_now
from twinlake.base.version import VERSION
from twinlake.config import users
from twinlake.config.settings import Services, Settings
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.storage.fit import check_store
from twinlake.metrics.catalogue import SQL
from twinlake.metrics.endpoint import Endpoint
from twinlake.metrics.scrape import Collector, registry_of
from twinlake.server import lock
from twinlake.server.client import LakeClient
from twinlake.services.checks import airflow as check_airflow
from twinlake.services.checks.finding import refuse_clock, tried
from twinlake.services.folders import Folders, folders_of
from twinlake.services.ports import HOST, Ports, free_port
from twinlake.services.sql import hand_over, users_file

FIRST = Services(sql_user="analyst", sql_password="reader", console_user="admin", console_password="person")


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = folders_of(Settings(home=tmp_path / "home"))
    made.make()
    hand_over(FIRST, made)
    return made


BROKEN = ("eve", "eve:1:zz:zz:admin", "eve:1:ab:cd:owner", "")
"""Lines that are none of a user."""


@pytest.mark.parametrize("by", ["the line corrected", "the file removed"])
@pytest.mark.parametrize("line", BROKEN)
def test_a_users_file_that_cannot_be_read_lets_in_again_by_either_way(
    folders: Folders, line: str, by: str
) -> None:
    file = users_file(folders)
    password = users.add(file, "anna", "operator")
    whole = file.read_text()
    file.write_text(f"{whole}{line}\n")
    with pytest.raises(UsageError, match="cannot be read") as refused:
        users.admitted(file, "anna", password)
    with pytest.raises(UsageError, match="cannot be read"):
        hand_over(FIRST, folders)  # `twinlake up` alone does not put it right

    if by == "the line corrected":
        file.write_text(whole)
    else:
        file.unlink()
    hand_over(FIRST, folders)  # as `twinlake up` does

    assert "line 4" in refused.value.why and "`twinlake down` and `twinlake up`" in refused.value.remedy
    for name, secret in FIRST.reader, (FIRST.console_user, FIRST.console_password):
        assert users.admitted(file, name, secret)
    kept = {"the line corrected": ["anna"], "the file removed": []}[by]
    assert sorted(users.load(file)) == sorted(["admin", "analyst", *kept])
    if not kept:
        assert users.admitted(file, "anna", users.add(file, "anna", "operator"))


def test_a_second_lake_server_goes_on_once_the_first_has_ended(tmp_path: Path) -> None:
    first = lock.take(tmp_path)
    with pytest.raises(BusyError, match="is in use by another lake server") as refused:
        lock.take(tmp_path)

    first.close()

    assert "`twinlake down`" in refused.value.remedy
    lock.take(tmp_path).close()


@pytest.mark.parametrize("by", ["it was stopped", "another port is set"])
def test_a_fixed_port_that_somebody_held_is_used_by_either_way(tmp_path: Path, by: str) -> None:
    file = tmp_path / "ports.json"
    with socket.socket() as stranger:
        stranger.bind((HOST, free_port()))
        stranger.listen()
        port = stranger.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} is taken") as refused:
            Ports(file, {"registry": port}).renew_taken(["registry"])
        if by == "another port is set":
            other = free_port()
            ports = Ports(file, {"registry": other})
            assert ports.renew_taken(["registry"]) == [] and ports["registry"] == other
    if by == "it was stopped":
        assert Ports(file, {"registry": port}).renew_taken(["registry"]) == []

    assert f"ss -ltnp 'sport = :{port}'" in refused.value.remedy and "twinlake.toml" in refused.value.remedy


def test_metrics_are_served_at_another_port_than_one_that_is_taken() -> None:
    registry = registry_of(Collector(SQL, {}))
    with socket.socket() as stranger:
        stranger.bind((HOST, 0))
        stranger.listen()
        with pytest.raises(TwinlakeError, match="the metrics cannot be served at") as refused:
            Endpoint(registry, HOST, stranger.getsockname()[1], lambda *given: False).start()
        other = Endpoint(registry, HOST, free_port(), lambda *given: False)
        other.start()
        other.stop()

    assert "the port of [ports]" in refused.value.remedy


def test_a_server_of_another_version_is_asked_once_it_is_of_this_one() -> None:
    versions = ["99.0.0", VERSION]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"version": versions[0]})

    client = LakeClient("http://lake", "token", httpx.MockTransport(answer))
    with pytest.raises(UsageError, match="do not understand each other"):
        client.refuse_other_version("")
    versions.pop(0)  # `twinlake down`, `twinlake up`

    client.refuse_other_version("")


def test_a_clock_that_was_set_right_is_accepted() -> None:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    with pytest.raises(TwinlakeError, match="differ by 180 s") as refused:
        refuse_clock("it", now - timedelta(minutes=3), lambda: now)

    assert "NTP" in refused.value.remedy and refuse_clock("it", now, lambda: now) == "+0 s"


def test_the_clock_of_a_store_that_was_set_right_is_accepted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the clock of the lake's store is") as refused:
        check_store(tmp_path, utc_now() + timedelta(minutes=10))

    check_store(tmp_path, utc_now())

    assert "set the clocks" in refused.value.remedy


def test_settings_that_are_wrong_are_read_once_they_are_corrected(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    settings.file.write_text("[limits]\nquery_secnds = 60\n")
    with pytest.raises(UsageError, match="the settings are wrong") as refused:
        _ = settings.values
    settings.file.write_text(settings.file.read_text().replace("secnds", "seconds"))

    assert "query_seconds" in refused.value.why and "`twinlake doctor`" in refused.value.remedy
    assert Settings(home=tmp_path).values.limits.query_seconds == 60


def test_a_lake_whose_format_is_lost_is_opened_by_what_its_error_says_to_write(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_live(lake, {"sales": "a-1"})
    id = formats.acquire(lake)
    file = lake / "lake.json"
    kept = file.read_text()
    file.unlink()
    with pytest.raises(FormatError, match="the format of the lake") as refused:
        formats.acquire(lake)
    file.write_text(kept)
    from_a_backup = formats.acquire(lake)
    said = re.search(r'write (\{"id".*?\}) into it', refused.value.remedy)
    assert said
    file.write_text(said[1].replace("A NEW ID", "abc123").replace("N}", f"{len(formats.STEPS)}}}"))

    assert from_a_backup == id and formats.acquire(lake) == "abc123"
    assert release_log.live(lake) is not None


@pytest.fixture
def airflow() -> Iterator[FakeAirflow]:
    made = FakeAirflow()
    yield made
    made.close()


def test_an_airflow_that_is_not_well_is_used_once_it_is(tmp_path: Path, airflow: FakeAirflow) -> None:
    settings = configured(tmp_path, f'[airflow]\nurl = "{airflow.url}"\n')
    well = airflow.health
    airflow.health = {"metadatabase": {"status": "healthy"}, "scheduler": {"status": "unhealthy"}}
    (sick,) = wrong(check_airflow.findings(settings, utc_now))
    airflow.health = well
    elsewhere = configured(tmp_path, f'[airflow]\nurl = "http://{HOST}:{free_port()}"\n')
    (away,) = wrong(check_airflow.findings(elsewhere, utc_now))
    settings = configured(tmp_path, f'[airflow]\nurl = "{airflow.url}"\n')

    assert sick.what == f"the Airflow at {airflow.url} is not well" and "scheduler: unhealthy" in sick.why
    assert away.what.endswith("does not answer as Airflow does") and "fix url" in away.remedy
    assert wrong(check_airflow.findings(settings, utc_now)) == []


def test_what_could_not_be_checked_is_once_that_was_fixed(tmp_path: Path) -> None:
    file = tmp_path / "certificate"
    missing = tried("kafka", "a certificate", file.read_text)
    file.write_text("it is here")

    assert missing.error is not None and missing.error.what == "a certificate could not be checked"
    assert missing.error.remedy == "fix that, then ask again"
    assert tried("kafka", "a certificate", file.read_text).found == "it is here"


def test_a_place_that_no_lake_can_be_written_to_is_used_once_it_is_right(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.write_text("no folder")
    with pytest.raises(UnreachableError, match="cannot be written") as refused:
        check_store(place / "lake", utc_now())
    place.unlink()

    check_store(place / "lake", utc_now())

    assert "give this user the right to write" in refused.value.remedy
