"""The commands that are printed give the rights that a locked broker's users have, and no others."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from typer.testing import CliRunner

from twinlake.base.errors import UsageError
from twinlake.cli.app import build_app
from twinlake.services.rights import rights

RESOURCES = {"--topic": "TOPIC", "--group": "GROUP", "--transactional-id": "TRANSACTIONAL_ID"}
OPERATIONS = {"DescribeConfigs": "DESCRIBE_CONFIGS"}


def given_by(command: str, users: dict[str, str]) -> list[AclBinding]:
    """What Kafka's tool makes of a command, for these users by the names that they have there."""
    tool, *words = shlex.split(command)
    assert tool == "kafka-acls.sh" and words.pop(words.index("--add"))
    pairs = [*zip(words[::2], words[1::2], strict=True)]
    said = dict(pairs)
    (resource,) = RESOURCES.keys() & said.keys()
    role = {name: role for role, name in users.items()}[said["--allow-principal"].removeprefix("User:")]
    return [
        AclBinding(
            ResourceType[RESOURCES[resource]], said[resource],
            ResourcePatternType[said["--resource-pattern-type"].upper()], f"User:{role}", "*",
            AclOperation[OPERATIONS.get(word, word.upper())], AclPermissionType.ALLOW,
        )
        for option, word in pairs if option == "--operation"
    ]  # fmt: skip


def test_the_commands_give_these_rights_under_whatever_names(home: Path) -> None:
    users = {"ingest": "reads it", "producer": "producer", "changelog": "sends"}
    done = CliRunner().invoke(
        build_app(),
        ["acls", "--bootstrap-server", "kafka:9093", "--ingest", "reads it", "--changelog", "sends"],
    )

    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    found = [binding for line in lines for binding in given_by(line, users)]
    assert set(found) == set(rights(["orders"])) and len(found) == len(set(found))
    assert all("--bootstrap-server kafka:9093 --command-config admin.properties" in line for line in lines)
    assert "admin.properties has the login" in done.stderr


def test_names_and_address_are_those_of_the_settings(home: Path) -> None:
    (home / "secret").write_text("p")
    (home / "secret").chmod(0o600)
    (home / "twinlake.toml").write_text(
        f"""[kafka]
bootstrap_servers = "kafka-1:9093"
security = "SASL_SSL"
username = "twinlake-ingest"
password_file = "{home / 'secret'}"
[kafka.changelog]
username = "twinlake-changelog"
password_file = "{home / 'secret'}"
"""
    )

    done = CliRunner().invoke(build_app(), ["acls"])

    assert done.exit_code == 0, (done.output, done.exception)
    users = {"ingest": "twinlake-ingest", "producer": "twinlake-ingest", "changelog": "twinlake-changelog"}
    assert all("kafka-1:9093" in line for line in done.stdout.splitlines())
    for role, name in users.items():
        assert f"User:{name} " in done.stdout, role


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "no Kafka is named"),
        (["--bootstrap-server", ""], "--bootstrap-server '' is no address"),
        (["--bootstrap-server", "kafka"], "--bootstrap-server 'kafka' is no address"),
        (["--bootstrap-server", "k:9092", "--ingest", " "], "--ingest names nothing"),
        (["--bootstrap-server", "k:9092", "--command-config", ""], "--command-config names nothing"),
    ],
)
def test_without_an_address_or_with_an_empty_name_nothing_is_printed(
    home: Path, arguments: list[str], what: str
) -> None:
    done = CliRunner().invoke(build_app(), ["acls", *arguments])

    assert isinstance(done.exception, UsageError) and done.exception.what == what
    assert done.stdout == ""
