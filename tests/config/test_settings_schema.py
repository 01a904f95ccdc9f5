"""An editor sees each key of `twinlake.toml` and what is wrong by form; what is accepted it accepts too."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from twinlake.config.keys import relative_to
from twinlake.config.sections import every_key
from twinlake.config.settings_example import example
from twinlake.config.settings_schema import settings_schema

SCHEMA = settings_schema()
EDITOR = Draft7Validator(SCHEMA)
KEYS = {name: one for name, one in every_key() if not one.is_secret}


def keys(schema: dict[str, Any], within: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key by its whole name, with its schema."""
    for name, one in schema["properties"].items():
        if "properties" in one:
            yield from keys(one, f"{within}{name}.")
        else:
            yield f"{within}{name}", one


def test_it_has_every_key_and_no_other() -> None:
    Draft7Validator.check_schema(SCHEMA)

    assert {name for name, _ in keys(SCHEMA)} == KEYS.keys()


def test_the_example_with_every_key_is_accepted() -> None:
    text = re.sub(r"^# (?=\[|\w+ = )", "", example(), flags=re.MULTILINE)

    found = tomllib.loads(text)

    assert sum(isinstance(one, dict) for one in found.values()) == len(SCHEMA["properties"])
    assert [error.message for error in EDITOR.iter_errors(found)] == []


@pytest.mark.parametrize(
    "text",
    [
        "[kafka]\nbootstrap_server = 'a:1'",
        "[kafak]\n",
        "[kafka.producr]\nusername = 'a'",
        "[kafka.producer]\nsecurity = 'SSL'",
        "kafka = 7",
        "[kafka]\nbootstrap_servers = 'a'",
        "[kafka]\nsecurity = 'TLS'",
        "[kafka]\npassword = 'hunter2'",
        "[ports]\nsql = '1'",
        "[ports]\nsql = true",
        "[limits]\njdbc_seconds = 90000",
        "[lake]\nuri = '/data'",
        "[spark]\nmaster = 'mesos'",
        "[spark.conf]\n'executor.memory' = '4g'",
        "[airflow]\nurl = 'airflow.example.com'",
    ],
)
def test_what_is_wrong_by_form_is_seen(text: str) -> None:
    assert not EDITOR.is_valid(tomllib.loads(text))


@pytest.mark.parametrize("name", KEYS)
def test_a_value_that_is_accepted_is_not_refused_by_the_editor(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("held\n")
    (tmp_path / "file").chmod(0o600)
    key, form = KEYS[name], Draft7Validator(dict(keys(SCHEMA))[name])
    values = [
        tomllib.loads(f"value = {key.example}")["value"],
        "file",
        "x",
        "",
        1,
        5_000,
        -1,
        True,
        0.5,
        {},
        [],
    ]
    values += ["4g", "local[*]", "http://h", "h:1", "file:///data/lake", {"spark.a": 1}, {"a": 1}]

    accepted = []
    with relative_to(tmp_path):
        for value in values:
            try:
                key.parse(value)
            except ValueError:
                continue
            accepted.append(value)

    assert accepted and [value for value in accepted if not form.is_valid(value)] == []
