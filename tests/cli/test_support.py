"""`twinlake support`: planted secrets are in no file of it, in no form; what fails is named."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.json_shapes import wrong
from tests.small_lake.small import unpack
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.masking import MASK
from twinlake.cli import support_parts
from twinlake.cli.app import build_app
from twinlake.cli.support_parts import newest, without_rows
from twinlake.config.settings import Services, Settings
from twinlake.config.users import add
from twinlake.reference.json_output import COMMANDS
from twinlake.services.secrets import secrets_of

PEM = "-----BEGIN {0}-----\n{1}\n{2}\n-----END {0}-----\n"
AWKWARD = 'p"a\\s ü%+/=&s#w:o@rd'


@pytest.fixture
def planted() -> dict[str, str]:
    """One secret for each place that has some."""
    names = (
        "api token", "sql password", "console password", "metrics password", "airflow password",
        "producer password", "registry password", "kafka password file", "webhook token", "webhook path",
        "mail password", "lineage key", "otlp header", "variable", "key line 1", "key line 2",
        "client key line", "airflow secret key", "airflow jwt secret", "active settings", "token of before",
    )  # fmt: skip
    return {**{name: secrets.token_urlsafe(30) for name in names}, "awkward": AWKWARD}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: None, planted: dict[str, str]) -> Path:
    """A data directory with a lake, every kind of secret, and logs that have each of them in every form."""
    home = tmp_path / "home"
    unpack(0, home)

    def file(name: str, text: str) -> Path:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
        return path

    own = {name: file(f"own/{name.replace(' ', '_')}", f"{planted[name]}\n") for name in (
        "kafka password file", "webhook token", "mail password", "lineage key", "active settings",
    )}  # fmt: skip
    own["otlp header"] = file("own/headers", f"Authorization=Bearer {planted['otlp header']},X-Team=shop")
    own["client key"] = file(
        "own/client.key",
        PEM.format("PRIVATE KEY", planted["client key line"].replace("_", "/").replace("-", "+"), "AAAA"),
    )
    planted["client key line"] = planted["client key line"].replace("_", "/").replace("-", "+")
    Services(
        api_url="http://127.0.0.1:1", api_token=planted["api token"], sql_password=planted["sql password"],
        console_password=planted["console password"], metrics_password=planted["metrics password"],
        airflow_password=planted["airflow password"], project=str(tmp_path),
        api_tokens_rotating=[planted["token of before"]],
        kafka_access={"producer": {"username": "producer", "password": planted["producer password"]},
                      "ingest": {"username": "ingest", "password": planted["awkward"]},
                      "changelog": {"password_file": str(own["kafka password file"])}},
        registry_access={"password": planted["registry password"]},
    ).save(home / "services.json")  # fmt: skip
    file("twinlake.toml", (
        f'[kafka]\nbootstrap_servers = "127.0.0.1:1"\nsecurity = "SASL_SSL"\nusername = "u"\n'
        f'password_file = "{own["kafka password file"]}"\n[alarms]\n'
        f'webhook_url = "https://hooks.example.com/services/{planted["webhook path"]}"\n'
        f'webhook_token_file = "own/webhook_token"\nmail_server = "127.0.0.1:25"\nmail_from = "a@b.c"\n'
        f'mail_to = "a@b.c"\nmail_user = "u"\n'
        f'mail_password_file = "own/mail_password"\n'
        f'[registry]\nurl = "http://127.0.0.1:1"\nusername = "u"\n'
        f'[lineage]\nurl = "http://127.0.0.1:1"\napi_key_file = "own/lineage_key"\n'
        f'[metrics]\notlp_url = "http://127.0.0.1:1/v1/metrics"\notlp_headers_file = "own/headers"\n'
    ))  # fmt: skip
    file(
        "run/twinlake.toml",
        f'[kafka]\npassword_file = "{own["active settings"]}"\n'
        '[kafka.producer]\nkey_file = "own/client.key"\n',
    )
    monkeypatch.setenv("TWINLAKE_REGISTRY_PASSWORD", planted["variable"])
    file("airflow/passwords.json", json.dumps({"admin": planted["airflow password"]}))
    file("airflow/secret_key", planted["airflow secret key"])
    file("airflow/jwt_secret", planted["airflow jwt secret"])
    for number in (1, 2):
        planted[f"key line {number}"] = planted[f"key line {number}"].replace("_", "/").replace("-", "+")
    file("kafka/tls/broker.key", PEM.format("PRIVATE KEY", planted["key line 1"], planted["key line 2"]))
    planted["anna's password"] = add(home / "access" / "users", "anna", "admin")
    *_, salt, hash_, _ = (home / "access" / "users").read_text().strip().split(":")
    planted |= {"a salt": salt, "a hash": hash_}
    del planted["anna's password"]  # it is nowhere, so nobody can know it
    file("logs/lake.log", "".join(map(lines_with, planted.values())))
    file("logs/lake.log.1", "no line ends here ")
    file("logs/broker.log", "a line of the broker\n" * 100)
    file("run/alarms.json", json.dumps({"alarms": [{"what": f"who {planted['webhook path']} took nothing"}]}))
    file("airflow/logs/dag_id=batch/task.log", f"said {planted['airflow jwt secret']} aloud\n")
    monkeypatch.setenv("TWINLAKE_HOME", str(home))
    monkeypatch.setattr("twinlake.cli.doctor._of_given", lambda settings, services: iter(()))  # asks nobody
    return home


def lines_with(secret: str) -> str:
    basic = base64.b64encode(f"user:{secret}".encode()).decode()
    return (
        f"in the middle of {secret} a line\nglued{secret}glued\n{json.dumps({'event': f'got {secret}!'})}\n"
        f"GET /x?key={quote(secret, safe='')}&y\nAuthorization {basic}\n"
        f"cut off: {secret[:14] if len(secret) > 24 else ''}\n"
        + "".join(f"{letter}\0" for letter in f"wide {secret}")
        + "\n"
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["support", *arguments])


def bundle(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as packed:
        assert all(one.isfile() and one.mode == 0o600 for one in packed.getmembers())
        return {
            one.name.partition("/")[2]: packed.extractfile(one).read()  # type: ignore[union-attr]
            for one in packed.getmembers()
        }


def found_in(files: dict[str, bytes], planted: dict[str, str]) -> list[str]:
    """By other means than the command's own: plain search for some forms that it has to know."""
    found = []
    for what, secret in planted.items():
        raw = secret.encode()
        some = (
            raw, json.dumps(secret)[1:-1].encode(), quote(secret, safe="").encode(),
            secret.encode("utf-16-le"), base64.b64encode(b"user:" + raw)[8:-4],
            raw[:14] if len(raw) > 24 else raw,
        )  # fmt: skip
        found += [
            f"{what} in {name}" for name, content in files.items() if any(one in content for one in some)
        ]
    return found


def test_no_planted_secret_is_in_any_file_of_it(home: Path, tmp_path: Path, planted: dict[str, str]) -> None:
    done = run(str(tmp_path / "s.tar.gz"))

    assert done.exit_code == 0, (done.output, done.exception)
    files = bundle(tmp_path / "s.tar.gz")
    assert found_in(files, planted) == []
    assert (
        MASK in files["logs/lake.log"].decode()
        and files["logs/lake.log"].decode().count("in the middle of") > 20
    )
    assert (tmp_path / "s.tar.gz").stat().st_mode & 0o777 == 0o600
    known = set(secrets_of(Settings.of(os.environ)).values())
    assert not [what for what, one in planted.items() if one not in known]


def test_what_looks_for_them_finds_them_where_they_were_planted(home: Path, planted: dict[str, str]) -> None:
    log = {"logs/lake.log": (home / "logs" / "lake.log").read_bytes()}
    assert found_in(log, planted) == [f"{what} in logs/lake.log" for what in planted]


def test_it_has_what_helps_and_says_what_is_not_in_it(home: Path, tmp_path: Path) -> None:
    done = run(str(tmp_path / "s.tar.gz"), "--json")
    files, told = bundle(tmp_path / "s.tar.gz"), json.loads(done.stdout)
    contents = json.loads(files["contents.json"])

    assert wrong(COMMANDS["support"], told) == []
    assert {"version.json", "machine.json", "packages.txt", "settings.json", "disk.json", "doctor.json",
            "processes.json", "jobs.json", "audit.json", "alarms.json", "releases.json", "plans.json",
            "logs/lake.log", "logs/lake.log.1", "logs/broker.log", "logs/airflow-task-01.log", "README.txt",
            } <= set(files) == set(told["files"])  # fmt: skip
    assert contents["failed"] == told["failed"]
    assert set(told["failed"]) <= {"status.json", "certificates.json"}
    assert "its lake server has not made the step" in told["failed"]["certificates.json"]["why"]
    assert "values of records may be in it" in files["README.txt"].decode()
    assert json.loads(files["version.json"])["twinlake"] and json.loads(files["machine.json"])["cores"] > 0
    assert {one["number"] for one in json.loads(files["releases.json"])} == {1, 2}
    assert b"pyspark==" in files["packages.txt"] and len(json.loads(files["jobs.json"])) > 10
    settings = {one["name"]: one["value"] for one in json.loads(files["settings.json"])["settings"]}
    assert settings["registry.password"] == "(given)" and settings["kafka.username"] == "u"


def test_nothing_need_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: None) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path / "none"))

    done = run(str(tmp_path / "s.tar.gz"))

    files = bundle(tmp_path / "s.tar.gz")
    assert done.exit_code == 0 and not (tmp_path / "none").exists()
    failed = json.loads(files["contents.json"])["failed"]
    assert "Twinlake is not running" in failed["status.json"]["what"]
    assert "there is no lake at" in failed["jobs.json"]["what"]
    assert {"version.json", "machine.json", "disk.json", "doctor.json"} <= set(files)
    assert "not in it: jobs.json: there is no lake at" in done.stdout


def test_one_that_fails_stops_no_other_and_its_error_is_masked(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: dict[str, str]
) -> None:
    def fails(settings: Settings) -> Any:
        raise RuntimeError(f"cannot log in with {planted['sql password']}")

    monkeypatch.setattr(support_parts, "_machine", fails)
    shutil.copy(home / "twinlake.toml", home / "run" / "twinlake.toml")
    for no_longer in ("client key line", "active settings"):
        del planted[no_longer]
    (home / "twinlake.toml").write_text("[nothing]\n" + (home / "twinlake.toml").read_text())

    done = run(str(tmp_path / "s.tar.gz"))

    files = bundle(tmp_path / "s.tar.gz")
    failed = json.loads(files["contents.json"])["failed"]
    assert f"RuntimeError: cannot log in with {MASK}" in failed["machine.json"]["what"]
    assert "the settings are wrong" in failed["settings.json"]["what"]
    assert "logs/lake.log" in files and "doctor.json" in files
    assert "releases.json" in files, "by the settings that it was started with"
    assert found_in(files, planted) == [] and planted["sql password"] not in done.output


@pytest.mark.parametrize("torn", ["services.json", "twinlake.toml"])
def test_torn_files_of_secrets_hide_none(
    home: Path, tmp_path: Path, planted: dict[str, str], torn: str
) -> None:
    text = (home / torn).read_text()
    (home / torn).write_text(text[:-30] if torn == "services.json" else f"{text}\nx = = [")

    assert run(str(tmp_path / "s.tar.gz")).exit_code == 0
    assert found_in(bundle(tmp_path / "s.tar.gz"), planted) == []


def test_it_refuses_to_write_one_that_is_left(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: dict[str, str]
) -> None:
    """As where a password is what is written in place of it."""
    monkeypatch.setattr("twinlake.base.masking.Masker.mask", lambda self, text: text)

    done = run(str(tmp_path / "s.tar.gz"))

    assert isinstance(done.exception, TwinlakeError) and "nothing was written" in done.exception.what
    assert not any(one in f"{done.exception} {done.output}" for one in planted.values())
    assert not list(tmp_path.glob("*s.tar.gz*")), "nor is anything of it left"


def test_where_secrets_cannot_be_read_nothing_is_written(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open

    def refused(file: Any, *more: Any, **named: Any) -> Any:
        if str(file).endswith("webhook_token"):
            raise PermissionError(13, "Permission denied", str(file))
        return opened(file, *more, **named)

    monkeypatch.setattr("builtins.open", refused)

    done = run(str(tmp_path / "s.tar.gz"))

    assert isinstance(done.exception, UsageError) and "webhook_token" in done.exception.why
    assert not list(tmp_path.glob("*s.tar.gz*"))


def test_nothing_is_written_over(home: Path, tmp_path: Path) -> None:
    (tmp_path / "s.tar.gz").write_text("mine")

    done = run(str(tmp_path / "s.tar.gz"))

    assert isinstance(done.exception, UsageError) and (tmp_path / "s.tar.gz").read_text() == "mine"
    assert run("").exception is not None
    made = run(str(tmp_path), "--json")
    assert Path(json.loads(made.stdout)["file"]).name.startswith("twinlake-support-")


@pytest.mark.parametrize("secret_at", [*range(0, 60, 7)])
def test_the_end_of_a_log_begins_with_a_line(tmp_path: Path, secret_at: int) -> None:
    """Wherever the cut falls, no end of a secret is left that nobody would know."""
    secret, file = secrets.token_urlsafe(40), tmp_path / "log"
    file.write_text("x" * 100 + secret + "y" * secret_at + "\nsecond line\n")
    assert newest(file, 60, 100) == "second line\n" or secret_at > 45
    file.write_text("x" * 100 + secret + "y" * secret_at)
    assert secret[-8:] not in newest(file, 60, 100)
    assert newest(file, 1_000, 100) == file.read_text()


def test_of_an_answer_the_rows_are_left_out() -> None:
    told = {"batch": 7, "certificates": [{"differences": [{"speed": {"a": 1}}], "rows_compared": 3}]}
    left = {"batch": 7, "certificates": [{"differences": "1, left out", "rows_compared": 3}]}
    assert without_rows(told) == left
