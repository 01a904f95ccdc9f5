"""An editor sees each key of `twinlake.toml` and what is wrong by form; what is accepted it accepts too."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tests.config.test_project import WRONG
from tests.project import OURS
from twinlake.base.errors import UsageError
from twinlake.config.keys import relative_to
from twinlake.config.library import TEMPLATE
from twinlake.config.project import FOLDERS, Project
from twinlake.config.sections import every_key
from twinlake.config.settings_example import example
from twinlake.config.settings_file import load
from twinlake.config.settings_schema import settings_schema

SCHEMA = settings_schema()
EDITOR = Draft7Validator(SCHEMA)
KEYS = {name: one for name, one in every_key() if not one.is_secret}
UNSEEN = (
    "[kafka]\n", '[project]\ncontracts = "../other"\n', '[project]\ntables = "~/t"\n',
    '[project]\ndata = "~nobody-here/x"\n',
)  # fmt: skip
"""Wrong files of a project that no schema sees: the first is right in a data directory, the second where the
project's folder is called other, the third where it is the user's home, the last where there is that user."""
PATHS = ("a", "./a", "a/../b", "..a", "...", ".lake", "/srv/lake", "../lake")
AROUND = (".", "..", "./", "../..", "/", " ", "")


def keys(schema: dict[str, Any], within: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key by its whole name, with its schema."""
    for name, one in schema["properties"].items():
        if "properties" in one:
            yield from keys(one, f"{within}{name}.")
        else:
            yield f"{within}{name}", one


def test_it_has_every_key_and_no_other() -> None:
    Draft7Validator.check_schema(SCHEMA)

    assert {name for name, _ in keys(SCHEMA)} == KEYS.keys() | {f"project.{name}" for name in FOLDERS}


def test_the_example_with_every_key_is_accepted() -> None:
    text = re.sub(r"^# (?=\[|\w+ = )", "", example(), flags=re.MULTILINE)

    found = tomllib.loads(text)

    assert {"project", *found} == SCHEMA["properties"].keys()
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


@pytest.mark.parametrize("root", [OURS.root, TEMPLATE], ids=["ours", "new"])
def test_projects_that_load_are_accepted(root: Path) -> None:
    Project.load(root)

    text = (root / "twinlake.toml").read_text()
    with_every_key = re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE)
    assert [EDITOR.is_valid(tomllib.loads(one)) for one in (text, with_every_key)] == [True, True]


@pytest.mark.parametrize(("text", "_"), WRONG)
def test_a_project_is_refused_by_the_editor_as_it_is_when_loaded(text: str, _: str) -> None:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # no schema is asked

    assert EDITOR.is_valid(found) == (text in UNSEEN)


@pytest.mark.parametrize("value", [*PATHS, *AROUND])
def test_a_path_of_a_project_is_accepted_by_the_editor_where_it_is_when_loaded(
    tmp_path: Path, value: str
) -> None:
    text = f'[project]\ndata = "{value}"\n'
    (tmp_path / "twinlake.toml").write_text(text)
    try:
        Project.load(tmp_path)
        is_accepted = True
    except UsageError:
        is_accepted = False

    assert EDITOR.is_valid(tomllib.loads(text)) == is_accepted


def test_either_file_refuses_what_belongs_in_the_other(tmp_path: Path) -> None:
    text = "[project]\n[kafka]\nbootstrap_servers = 'k:1'\n"
    (tmp_path / "twinlake.toml").write_text(text)

    with pytest.raises(UsageError, match=r"\[kafka\] is not a section of a project"):
        Project.load(tmp_path)
    with pytest.raises(UsageError, match=r"\[project\] belongs in the twinlake.toml of the project's folder"):
        load(tmp_path / "twinlake.toml", {})
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
