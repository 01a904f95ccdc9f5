"""The commands of the gallery: what is added, what is refused, and when records may be sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.broker import Broker
from tests.project import GALLERY, OURS, project_in
from tests.registry import FakeRegistry
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.cli import gallery
from twinlake.cli.app import build_app
from twinlake.config.settings import Services, Settings
from twinlake.topics.kafka import Kafka


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["gallery", *arguments])


def refused(*arguments: str) -> TwinlakeError:
    found = asked(*arguments).exception
    assert isinstance(found, UsageError), found
    return found


def test_an_example_is_added_once_and_listed_as_such(home: Path) -> None:
    first, again, other = asked("add", "trades"), asked("add", "trades"), asked("add", "words")
    listed = asked("list")

    assert [one.exit_code for one in (first, again, other, listed)] == [0] * 4
    assert first.stdout.split() == (
        "trades is added: topics trades; "
        "tables last_trades, prices_per_day, top_symbols, trades_in_5_seconds".split()
    )
    assert "`twinlake reload`" in first.stderr
    assert (again.stdout, again.stderr.strip()) == ("", "trades has been added before")
    assert Settings(home=home, in_project=OURS).examples == ("trades", "words")
    words = {
        line.split()[0]: line.split()[1] for line in listed.stdout.splitlines()[1:] if line[:1].isalpha()
    }
    assert words == {name: "yes" if name in ("trades", "words") else "no" for name in OURS.example_names()}


def test_it_is_added_to_the_state_that_is_named(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"

    done = CliRunner().invoke(build_app(), ["--home", str(other), "gallery", "add", "trades"])

    assert done.exit_code == 0 and json.loads((other / "gallery.json").read_text()) == ["trades"]
    assert Settings(home=home, in_project=OURS).examples == ()


@pytest.mark.parametrize("taken", ["trades", "top_symbols"], ids=["its topic", "one of its tables"])
def test_an_example_whose_names_are_taken_changes_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    project = tmp_path / "project"
    (project / "examples").mkdir(parents=True)
    (project / "examples" / "trades").symlink_to(GALLERY / "trades")
    (project / "schemas").mkdir(parents=True)
    schema = (GALLERY / "trades" / "schemas" / "trades.v1.avsc").read_text()
    (project / "schemas" / f"{taken}.v1.avsc").write_text(schema)
    monkeypatch.setattr(gallery, "load_settings", lambda: Settings(home=home, in_project=project_in(project)))

    found = refused("add", "trades")

    assert (found.what, found.why) == ("trades cannot be added", f"there is {taken} already")
    assert Settings(home=home, in_project=OURS).examples == ()


def test_no_records_are_sent_of_what_is_not_added_or_not_open_yet(home: Path, registry: FakeRegistry) -> None:
    services = Services(bootstrap_servers="127.0.0.1:1", registry_url=registry.url)
    services.save(Settings(home=home, in_project=OURS).services_file)

    before = refused("produce", "trades")
    asked("add", "trades")
    after = refused("produce", "trades")

    assert (before.what, before.remedy) == ("trades is not added yet", "run `twinlake gallery add trades`")
    assert (after.what, after.remedy) == (
        "topic trades is not open yet", "run `twinlake reload`, or `twinlake up` where nothing runs",
    )  # fmt: skip
    assert registry.asked == ["GET /subjects/trades-value/versions"]


@pytest.mark.faults
def test_a_topic_in_json_is_open_when_the_broker_has_it(
    home: Path, tmp_path: Path, registry: FakeRegistry
) -> None:
    broker = Broker(tmp_path / "broker").start()
    services = Services(bootstrap_servers=broker.bootstrap, registry_url=registry.url)
    services.save(Settings(home=home, in_project=OURS).services_file)
    asked("add", "parcels")
    try:
        before = refused("produce", "parcels")
        Kafka(broker.login).create("parcel_scans")
        after = asked("produce", "parcels", "--count", "10")
    finally:
        broker.stop()

    assert (before.what, before.remedy) == (
        "topic parcel_scans is not open yet", "run `twinlake reload`, or `twinlake up` where nothing runs",
    )  # fmt: skip
    assert after.stdout.startswith("parcel_scans: 10 records acknowledged")


@pytest.mark.parametrize("command", ["add", "produce"])
def test_an_example_that_there_is_not_is_refused_with_those_there_are(home: Path, command: str) -> None:
    found = refused(command, "nothing")

    assert found.what == "there is no example 'nothing'" and "trades" in found.remedy


@pytest.fixture
def registry(home: Path) -> Iterator[FakeRegistry]:
    made = FakeRegistry()
    yield made
    made.close()
