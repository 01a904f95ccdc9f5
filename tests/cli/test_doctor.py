"""`twinlake doctor`: settings with their origins, findings, the example."""

from __future__ import annotations

import json
import re
import socket
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.json_shapes import wrong
from tests.registry import FakeRegistry
from twinlake.base.errors import UnreachableError
from twinlake.cli import doctor
from twinlake.cli.app import build_app
from twinlake.config.keys import Section
from twinlake.config.sections import SECTIONS
from twinlake.config.settings import Settings
from twinlake.config.settings_example import example
from twinlake.lake import formats
from twinlake.reference.json_output import COMMANDS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    monkeypatch.setattr(doctor, "_prerequisites", lambda settings: "are here")  # this machine's own matter
    monkeypatch.setattr(doctor, "_confinement", lambda settings: "a view")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["doctor", *arguments])


def as_json(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = run("--json", *arguments)
    found = json.loads(done.stdout)
    assert wrong(COMMANDS["doctor"], found) == []
    return done.exit_code, found


def test_without_a_file_all_is_well_and_every_setting_is_its_default() -> None:
    code, found = as_json()

    assert (code, found["ok"], found["file"]) == (0, True, None)
    assert {row["from"] for row in found["settings"]} == {"default"}
    assert {"name": "spark.master", "value": "local[*]", "from": "default"} in found["settings"]


def test_a_setting_is_shown_with_its_origin_and_a_secret_never(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = FakeRegistry()
    registry.login = ("u", "hunter2")
    monkeypatch.setenv("TWINLAKE_REGISTRY_PASSWORD", "hunter2")
    monkeypatch.setenv("TWINLAKE_SPARK_CONF", '{ "spark.hadoop.fs.s3a.secret.key" = "hunter2" }')
    (home / "twinlake.toml").write_text(f'[registry]\nurl = "{registry.url}"\nusername = "u"\n')

    code, found = as_json()
    text = run().stdout
    registry.close()

    rows = {row["name"]: (row["value"], row["from"]) for row in found["settings"]}
    assert code == 0
    assert rows["registry.url"] == (registry.url, "twinlake.toml:2")
    assert rows["registry.password"] == ("(given)", "TWINLAKE_REGISTRY_PASSWORD")
    assert rows["spark.conf.spark.hadoop.fs.s3a.secret.key"] == ("(given)", "TWINLAKE_SPARK_CONF")
    assert "hunter2" not in json.dumps(found) + text
    assert {(one["service"], one["given"]) for one in found["checks"] if one["service"] == "registry"} == {
        ("registry", True)
    }


def test_a_mistake_in_the_file_ends_it_with_1_and_the_remedy_on_stdout(home: Path) -> None:
    (home / "twinlake.toml").write_text("[kafka]\nsecurty = 'SSL'\n")

    done = run()

    assert done.exit_code == 1
    assert "twinlake.toml:2: kafka.securty: there is no such key; did you mean security?" in done.stdout


def test_whatever_does_not_answer_ends_it_with_1_beside_all_other_findings(home: Path) -> None:
    (home / "twinlake.toml").write_text(
        '[kafka]\nbootstrap_servers = "127.0.0.1:1"\n[registry]\nurl = "http://127.0.0.1:1"\n'
    )

    code, found = as_json()

    wrong = [one["error"]["error"] for one in found["checks"] if not one["ok"]]
    assert (code, wrong) == (1, ["UnreachableError", "UnreachableError"])


def test_a_fixed_port_that_somebody_holds_is_told(home: Path) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        (home / "twinlake.toml").write_text(f"[ports]\njdbc = {port}\n")

        code, found = as_json()

    (error,) = [one["error"] for one in found["checks"] if not one["ok"]]
    assert code == 1 and f"port {port} is taken" in error["what"]


def test_a_spark_master_that_is_away_is_told_by_doctor_and_by_up(home: Path) -> None:
    (home / "twinlake.toml").write_text('[spark]\nmaster = "spark://127.0.0.1:1"\n')

    code, found = as_json()
    done = CliRunner().invoke(build_app(), ["up"])

    (error,) = [one["error"] for one in found["checks"] if not one["ok"]]
    assert code == 1 and error["what"] == "no Spark master answers at spark://127.0.0.1:1"
    assert isinstance(done.exception, UnreachableError) and done.exception.what == error["what"]
    assert not (home / "run").exists()
    assert "without it Spark runs on this machine" in error["remedy"]
    (home / "twinlake.toml").write_text("")
    code, found = as_json()
    assert code == 0, found


def test_it_leaves_nothing_behind(home: Path) -> None:
    (home / "twinlake.toml").write_text("[ports]\njdbc = 4711\n")

    run()

    assert [path.name for path in home.rglob("*")] == ["twinlake.toml"]


def test_up_asks_what_is_given_before_it_starts_anything(home: Path) -> None:
    (home / "twinlake.toml").write_text('[kafka]\nbootstrap_servers = "127.0.0.1:1"\n')

    done = CliRunner().invoke(build_app(), ["up"])

    assert isinstance(done.exception, UnreachableError)
    assert done.exception.what == "nobody listens at 127.0.0.1:1"
    assert not (home / "run").exists()


def uncommented(text: str) -> dict[str, Any]:
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    return tomllib.loads("\n".join(line for line in lines if re.match(r"\[[\w.]+\]$|\w+ = ", line)))


def test_the_example_has_every_key_with_a_value_that_it_may_have() -> None:
    found, seen = uncommented(example()), []

    def look(name: str, section: Section, values: dict[str, Any]) -> None:
        for key, one in section.keys.items():
            if isinstance(one, Section):
                look(f"{name}.{key}", one, values.pop(key))
            elif not one.is_secret:
                value = values.pop(key)
                if "_file" not in key:  # which are not there
                    one.parse(value)
                seen.append(f"{name}.{key}")
        assert values == {}, name

    for name, section in SECTIONS.items():
        look(name, section, found.pop(name))
    assert found == {} and len(seen) > 40


def test_the_example_as_it_stands_changes_nothing(home: Path) -> None:
    (home / "twinlake.toml").write_text(run("--example").stdout)

    assert Settings(home=home).values.origins == {}




def of_lake(found: dict[str, Any]) -> list[tuple[bool, str]]:
    """Whether the lake's store is sound, and why not."""
    checks = [one for one in found["checks"] if one["service"] == "lake"]
    return [(one["ok"], one["error"]["why"] if one["error"] else "") for one in checks]


def test_the_store_of_a_lake_elsewhere_is_tried_out(home: Path, tmp_path: Path) -> None:
    assert of_lake(as_json()[1]) == [(True, "")]
    assert not (home / "lake").exists()

    (home / "twinlake.toml").write_text(f'[lake]\nuri = "file://{tmp_path}/elsewhere"\n')
    code, found = as_json()

    assert (code, of_lake(found)) == (0, [(True, "")])
    assert [*(tmp_path / "elsewhere").iterdir()] == []


def test_the_format_of_the_lake_is_told_and_a_newer_one_is_wrong(home: Path) -> None:
    new, lake = as_json()[1]["checks"][-1], home / "lake"
    formats.acquire(lake)
    mine = as_json()[1]["checks"][-1]
    (lake / "lake.json").write_text('{"id": "x", "format": 99, "needs": "9.0.0"}')

    code, found = as_json()

    number = len(formats.STEPS)
    assert (new["found"], mine["found"]) == (
        f"there is none yet; it will have format {number}", f"format {number}"
    )  # fmt: skip
    assert code == 1 and "use Twinlake 9.0.0 or newer" in found["checks"][-1]["error"]["remedy"]


def test_a_store_that_nobody_can_write_commits_to_is_told(home: Path) -> None:
    (home / "twinlake.toml").write_text('[lake]\nuri = "s3a://bucket/lake"\n')

    code, found = as_json()

    assert code == 1
    (error,) = (one["error"] for one in found["checks"])
    assert "there is no store for s3a:// that publishes a file only where there is none" in error["why"]
