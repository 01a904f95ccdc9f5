"""Addresses follow the ports; secrets are made once and are their owner's only."""

import stat
from dataclasses import asdict, replace

from twinlake.services.addresses import addresses
from twinlake.services.part import Context


def test_every_address_is_known_before_anything_runs(context: Context) -> None:
    found = addresses(context)

    missing = {name for name, value in asdict(found).items() if value in ("", None)}
    assert missing == {"sql_ca_file"}  # of a server on another machine alone
    assert found.bootstrap_servers == f"127.0.0.1:{context.ports['broker']}"


def test_asking_again_changes_no_address_and_no_secret(context: Context) -> None:
    first = addresses(context)

    assert addresses(replace(context, services=first)) == first


def test_files_with_secrets_are_for_their_owner_only(context: Context) -> None:
    found = addresses(context)

    holders = [
        path
        for path in context.folders.home.rglob("*")
        if path.is_file() and path.read_text() and found.airflow_password in path.read_text()
    ]
    assert [path.name for path in holders] == ["passwords.json"]
    assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600
    assert stat.S_IMODE((context.folders.of("kafka") / "cluster_id").stat().st_mode) == 0o600
