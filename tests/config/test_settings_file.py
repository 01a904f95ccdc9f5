"""twinlake.toml and the environment's words for it."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest

from twinlake.base.errors import UsageError
from twinlake.base.location import Remote
from twinlake.config.login import Login
from twinlake.config.sections import SECRET_FILE, SECTIONS, Limits, every_key
from twinlake.config.settings import Settings
from twinlake.config.settings_file import lines_of, load
from twinlake.config.values import Values

SASL = 'bootstrap_servers = "k:9093"\nsecurity = "SASL_SSL"\n'


def written(folder: Path, text: str) -> Path:
    file = folder / "twinlake.toml"
    file.write_text(text)
    return file


def held(folder: Path, name: str = "password", content: str = "hunter2\n", mode: int = 0o600) -> Path:
    made = folder / name
    made.write_text(content)
    made.chmod(mode)
    return made


def refused(folder: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    """The mistakes that are told of a file."""
    with pytest.raises(UsageError) as told:
        load(written(folder, text), environ or {})
    assert "hunter2" not in str(told.value)
    return told.value.to_json()["why"].splitlines()


def test_without_a_file_everything_is_as_it_was_before_there_was_one(tmp_path: Path) -> None:
    found = Settings(home=tmp_path).values

    assert found == Values()
    assert not (found.kafka.is_external or found.registry.is_external or found.airflow.is_external)
    assert not found.spark.is_external and found.spark.master == "local[*]" and found.origins == {}


def test_what_the_file_says_is_read_and_where_it_says_so_is_kept(tmp_path: Path) -> None:
    password = held(tmp_path)
    held(tmp_path, "other", "produced")
    text = f"""
[kafka]
bootstrap_servers = "one:9093, two:9093"
security = "SASL_SSL"
username = "ingest"
password_file = "{password}"
[kafka.producer]
username = "shop"
password_file = "other"   # beside the file

[spark.conf]
"spark.executor.memory" = "3g"
"spark.executor.cores" = 2
[limits]
jdbc_seconds = 60
"""
    found = load(written(tmp_path, text), {})

    ingest, producer = found.kafka.opened(), found.kafka.login("producer")
    assert (ingest.username, ingest.password, ingest.mechanism) == ("ingest", "hunter2", "SCRAM-SHA-512")
    assert found.kafka.login("ingest") is found.kafka and found.kafka.login("changelog") is found.kafka
    assert producer == Login(
        bootstrap_servers="one:9093, two:9093", security="SASL_SSL", username="shop",
        password_file=tmp_path / "other",
    )  # fmt: skip
    assert producer.opened().password == producer.client()["sasl.password"] == "produced"
    assert found.spark.conf == {"spark.executor.memory": "3g", "spark.executor.cores": "2"}
    assert found.limits == Limits(jdbc_seconds=60)
    assert found.origins["kafka.security"] == "twinlake.toml:4"
    assert found.origins["limits.jdbc_seconds"] == "twinlake.toml:15"
    assert "hunter2" not in repr(found) and "produced" not in repr(found)


def test_the_environment_goes_before_the_file_and_may_hold_a_secret(tmp_path: Path) -> None:
    environ = {
        "TWINLAKE_KAFKA_PASSWORD": "from outside", "TWINLAKE_PORTS_SQL": "4711",
        "TWINLAKE_REGISTRY_URL": "http://r:8081/", "TWINLAKE_LIMITS_JDBC_SECONDS": "9",
        "TWINLAKE_SPARK_CONF": '{ "spark.hadoop.fs.s3a.secret.key" = "k" }', "TWINLAKE_HOME": "/elsewhere",
        "TWINLAKE_KAFKA_CHANGELOG_USERNAME": "c", "TWINLAKE_KAFKA_CHANGELOG_PASSWORD": "d", "OTHER": "1",
        "TWINLAKE_AIRFLOW_URL": "",
    }  # fmt: skip
    text = f'[kafka]\n{SASL}username = "u"\n[limits]\njdbc_seconds = 60\n[spark.conf]\n"spark.a" = "b"\n'

    found = load(written(tmp_path, text), environ)

    assert (found.kafka.password, found.ports.sql, found.registry.url) == (
        "from outside",
        4711,
        "http://r:8081",
    )
    assert found.kafka.changelog == Login(username="c", password="d") and found.kafka.producer is None
    assert found.spark.conf == {"spark.a": "b", "spark.hadoop.fs.s3a.secret.key": "k"}
    assert "'k'" not in repr(found)
    assert found.limits.jdbc_seconds == 9 and found.airflow.url == ""
    assert found.origins["ports.sql"] == "TWINLAKE_PORTS_SQL"
    assert "TWINLAKE_HOME" not in Settings.of(environ).overrides


def test_a_secret_in_the_file_is_refused_whatever_the_environment_adds(tmp_path: Path) -> None:
    text = "[spark.conf]\n'spark.hadoop.fs.s3a.secret.key' = 'hunter2'\n"

    with pytest.raises(UsageError, match=r"spark\.hadoop\.fs\.s3a\.secret\.key is a secret"):
        load(written(tmp_path, text), {"TWINLAKE_SPARK_CONF": '{ "spark.cores.max" = "4" }'})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[kafka]\nbootstrap_server = 'a:1'", "twinlake.toml:2: kafka.bootstrap_server: there is no such "
         "key; did you mean bootstrap_servers?"),
        ("[kafak]\n", "twinlake.toml:1: kafak: there is no such section; did you mean kafka?"),
        ("[kafka.producr]\nusername='a'", "twinlake.toml:1: kafka.producr: there is no such key; "
         "did you mean producer?"),
        ("[x]\n", "twinlake.toml:1: x: there is no such section; known: kafka, registry, spark, lake, "
         "airflow, console, sql, ports, limits, alarms, backup, releases, lineage, webhooks, metrics, proof"),
        ("kafka = 7", "twinlake.toml:1: kafka: it is a section: write [kafka], and its keys below"),
        ("[kafka]\nbootstrap_servers = 'a'", 'twinlake.toml:2: kafka.bootstrap_servers: it must be like '
         '"host:9092" or "one:9092,two:9092"'),
        ("[kafka]\nsecurity = 'TLS'", "twinlake.toml:2: kafka.security: it must be one of PLAINTEXT, "
         "SASL_SSL, SSL"),
        ("[ports]\nsql = '1'", "twinlake.toml:2: ports.sql: it must be a whole number from 1 to 65535"),
        ("[ports]\nsql = true", "twinlake.toml:2: ports.sql: it must be a whole number from 1 to 65535"),
        ("[ports]\nsql = 5000\njdbc = 5000", "twinlake.toml:3: ports.jdbc: 5000 is sql's already"),
        ("[limits]\njdbc_seconds = 90000", "twinlake.toml:2: limits.jdbc_seconds: it must be a whole number "
         "from 1 to 18000"),
        ("[lake]\nuri = '/data'", "twinlake.toml:2: lake.uri: it must be an address like "
         "file:///data/lake or hdfs://name-node:8020/lake"),
        ("[lake]\nuri = 'file:///'", "twinlake.toml:2: lake.uri: it is not an absolute path of this "
         "machine, or its root; name a folder, as in file:///srv/lake or hdfs://namenode:8020/lake"),
        ("[lake]\nuri = 's3a://bucket/lake'", "twinlake.toml:2: lake.uri: there is no store for s3a:// that "
         "publishes a file only where there is none; name a folder, as in file:///srv/lake or "
         "hdfs://namenode:8020/lake"),
        ("[backup]\nfolder = 'backups'", "twinlake.toml:2: backup.folder: it must be a folder by its whole "
         'path, like "/mnt/backups/shop", or an hdfs:// address'),
        ("[backup]\nfolder = 's3a://bucket/x'", "twinlake.toml:2: backup.folder: it must be a folder by its "
         'whole path, like "/mnt/backups/shop", or an hdfs:// address: there is no store for s3a:// that '
         "publishes a file only where there is none"),
        ("[backup]\nfolder = ''", 'twinlake.toml:2: backup.folder: it must be text, like "..."'),
        ("[backup]\nkeep = 0", "twinlake.toml:2: backup.keep: it must be a whole number from 1 to 10000"),
        ("[backup]\nkeep = 7.0", "twinlake.toml:2: backup.keep: it must be a whole number from 1 to 10000"),
        ("[lake]\nuri = 'file:///data/lake'\n[backup]\nfolder = '/data/lake/b'", "twinlake.toml:4: "
         "backup.folder: /data/lake/b is in /data/lake, or around it, and would be lost with it; name a "
         "folder on another disk"),
        ("[lake]\nuri = 'hdfs://n:1/a/lake'\n[backup]\nfolder = 'hdfs://n:1/a'", "twinlake.toml:4: "
         "backup.folder: hdfs://n:1/a is in hdfs://n:1/a/lake, or around it, and would be lost with it; "
         "name a folder on another disk"),
        ("[registry]\nurl = 'registry:8081'", "twinlake.toml:2: registry.url: it must be an address like "
         "https://host:8081"),
        ("[registry]\nurl = 'https://one,http://two:8081'", "twinlake.toml:2: registry.url: it must be an "
         "address like https://host:8081"),
        ("[registry]\nurl = 'http://me:hunter2@registry:8081'", "twinlake.toml:2: registry.url: it must hold "
         "no user and no password; give username and password_file instead"),
        ("[airflow]\nurl = 'http://me:hunter2@airflow'", "twinlake.toml:2: airflow.url: it must hold "
         "no user and no password; leave them out, nothing is asked that needs them"),
        ("[spark]\nmaster = 'spark:7077'", "twinlake.toml:2: spark.master: it must be local[*], "
         "spark://host:7077, yarn or k8s://..."),
        ("[spark.conf]\nx = '1'", 'twinlake.toml:1: spark.conf: x: names begin with spark. and stand in '
         'quotes: "spark.executor.memory"'),
        ("[spark.conf]\n'spark.hadoop.fs.s3a.secret.key' = 'hunter2'", "twinlake.toml:1: spark.conf: "
         "spark.hadoop.fs.s3a.secret.key is a secret; give it in the environment: "
         "TWINLAKE_SPARK_CONF='{ \"spark.hadoop.fs.s3a.secret.key\" = \"...\" }'"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_line_and_what_would_be_right(
    tmp_path: Path, text: str, told: str
) -> None:
    assert refused(tmp_path, text) == [told]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[kafka]\npassword = 'hunter2'", "kafka.password: a secret does not stand in this file"),
        ("[kafka.producer]\nkey_password = 'hunter2'", "kafka.producer.key_password: a secret does not"),
        (
            "[registry]\npassword = 'hunter2'",
            "name that by password_file, or give TWINLAKE_REGISTRY_PASSWORD",
        ),
        ("[airflow]\ntoken = 'hunter2'", "airflow.token: a secret does not stand in this file"),
    ],
)
def test_a_secret_in_the_file_is_refused_with_how_to_give_it(tmp_path: Path, text: str, told: str) -> None:
    (only,) = refused(tmp_path, text)

    assert told in only


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SASL, "SASL_SSL needs username and password_file"),
        ('bootstrap_servers = "k:1"\nsecurity = "SSL"', "SSL needs certificate_file and key_file"),
        ('bootstrap_servers = "k:1"\nusername = "u"', "with PLAINTEXT nobody asks who a client is"),
        ('bootstrap_servers = "k:1"\nmechanism = "PLAIN"', 'it is for security = "SASL_SSL"'),
        ('security = "SSL"', "the broker that is started here knows PLAINTEXT and SASL_SSL"),
        ('security = "SASL_SSL"\nusername = "u"', "kafka.bootstrap_servers is missing"),
        ('[kafka.producer]\nusername = "u"', "kafka.bootstrap_servers is missing"),
        ('[registry]\nusername = "u"', "url is missing"),
        ('[registry]\nurl = "https://r"\npassword_file = "secret"', "need each other"),
        ('[registry]\nurl = "http://r"\nca_file = "ca"', "the url is not https://"),
        ('[registry]\nurl = "http://r"\nusername = "u"\npassword_file = "secret"', "use https://"),
        ('[airflow]\nca_file = "ca"', "without url nobody asks for it"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(tmp_path: Path, text: str, told: str) -> None:
    held(tmp_path, "secret")
    held(tmp_path, "ca", "-", 0o644)

    (only,) = refused(tmp_path, text if text.startswith("[") else f"[kafka]\n{text}")

    assert told in only


def test_a_password_is_needed_by_those_only_who_start_the_services(tmp_path: Path) -> None:
    text = f'[kafka]\n{SASL}username = "u"\n[kafka.producer]\nusername = "p"\n[registry]\nurl = "https://r"\n'
    written(tmp_path, f'{text}username = "u"\n')

    with pytest.raises(UsageError, match="wrong in 3 places") as told:
        Settings(home=tmp_path).refuse_incomplete()
    Settings.of(
        {
            "TWINLAKE_HOME": str(tmp_path), "TWINLAKE_KAFKA_PASSWORD": "a", "TWINLAKE_REGISTRY_PASSWORD": "b",
            "TWINLAKE_KAFKA_PRODUCER_PASSWORD": "c",
        }
    ).refuse_incomplete()  # fmt: skip

    assert Settings(home=tmp_path).values.kafka.username == "u", "other commands go on without it"
    assert "TWINLAKE_KAFKA_PRODUCER_PASSWORD" in told.value.why


def test_a_password_may_go_to_a_registry_on_this_machine_in_the_clear(tmp_path: Path) -> None:
    held(tmp_path, "secret")
    text = '[registry]\nurl = "http://127.0.0.1:8081"\nusername = "u"\npassword_file = "secret"'

    assert load(written(tmp_path, text), {}).registry.basic_auth == ("u", "hunter2")


@pytest.mark.parametrize(
    ("content", "mode", "told"),
    [
        ("hunter2", 0o644, "everybody on this machine can read"),
        ("hunter2", 0o660, "more than its owner can change it"),
        ("", 0o600, "must hold one line"),
        ("hunter2\nhunter3\n", 0o600, "must hold one line"),
        (None, 0o600, "there is no file"),
    ],
)
def test_a_file_that_keeps_no_secret_is_refused(
    tmp_path: Path, content: str | None, mode: int, told: str
) -> None:
    file = held(tmp_path, "secret", content or "", mode)
    if content is None:
        file.unlink()

    mistakes = refused(tmp_path, f'[kafka]\n{SASL}username = "u"\npassword_file = "secret"')

    assert mistakes[0].startswith("twinlake.toml:5: ") and told in mistakes[0]


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = "[kafka]\nsecurty = 'SSL'\n[ports]\nsql = 0\n"

    told = refused(tmp_path, text, {"TWINLAKE_LIMITS_JDBC_SECOND": "1", "TWINLAKE_SPARK_MASTER": "x"})

    assert [line.split(": ")[0] for line in told] == [
        "twinlake.toml:2", "TWINLAKE_SPARK_MASTER", "twinlake.toml:4", "TWINLAKE_LIMITS_JDBC_SECOND"
    ]  # fmt: skip
    assert "did you mean TWINLAKE_LIMITS_JDBC_SECONDS?" in told[3]


def test_a_file_that_is_no_toml_is_told_with_its_line(tmp_path: Path) -> None:
    (told,) = refused(tmp_path, "[kafka]\nsecurity = PLAINTEXT\n")

    assert "line 2" in told


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    written(tmp_path, "").chmod(0)

    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "twinlake.toml", {})


def test_lines_are_found_below_their_sections() -> None:
    found = lines_of('a = 1\n\n[ kafka ] # x\n  "b" = 2\nc=3\n[kafka.producer]\nc = 4\n')

    assert found == {"a": 1, "kafka": 3, "kafka.c": 5, "kafka.producer": 6, "kafka.producer.c": 7}


def test_every_key_says_what_it_is_for() -> None:
    silent = [
        f"{name}.{one.name}"
        for name, section in SECTIONS.items()
        for one in fields(section.kind)
        if one.name not in section.keys
    ]
    silent += [name for name, one in every_key() if not (one.doc and one.example)]

    assert silent == []


def test_the_digest_tells_settings_apart_but_for_where_they_stand(tmp_path: Path) -> None:
    held(tmp_path)
    text = f'[kafka]\n{SASL}username = "u"\npassword_file = "password"\n'
    first = load(written(tmp_path, text), {}).digest
    held(tmp_path, content="hunter3")

    assert load(written(tmp_path, f"# later\n{text}"), {}).digest == first, "the file is read when it is used"
    assert load(written(tmp_path, text), {"TWINLAKE_KAFKA_USERNAME": "v"}).digest != first
    by_environment = {load(written(tmp_path, text), {"TWINLAKE_KAFKA_PASSWORD": one}).digest for one in "ab"}
    assert len(by_environment | {first}) == 3


def test_files_and_addresses_that_cannot_be_are_told_with_their_line(tmp_path: Path) -> None:
    long, nobody = "a" * 300, "~no-such-user/ca.pem"
    told = refused(
        tmp_path,
        f"""
[kafka]
ca_file = "{long}"
[airflow]
url = "https://airflow:https"
ca_file = "{nobody}"
[registry]
url = "http://[::1:8081"
username = "twinlake"
""",
    )

    assert [line.partition(": ")[0] for line in told] == [f"twinlake.toml:{line}" for line in (3, 8, 5, 6)]
    assert "File name too long" in told[0] and "not an address" in told[1] and "no such user" in told[3]


def test_a_password_of_the_environment_is_one_line(tmp_path: Path) -> None:
    environ = {"TWINLAKE_KAFKA_PASSWORD": "hunter2\r", "TWINLAKE_KAFKA_USERNAME": "ann"}

    assert refused(tmp_path, f"[kafka]\n{SASL}", environ) == [
        "TWINLAKE_KAFKA_PASSWORD: it must hold one line, the password alone"
    ]


@pytest.mark.parametrize("place", ["", "/..", "/lake/prod", "/kafka", "/run/spark", "/link/lake"])
def test_a_lake_is_neither_around_the_home_nor_in_what_reset_deletes(tmp_path: Path, place: str) -> None:
    """`twinlake reset` deleted $TWINLAKE_HOME/lake/prod and said that it was left as it is."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    folder = (tmp_path / "link" / "kafka") if "link" in place else home / place.strip("/")

    (told,) = refused(home, f'[lake]\nuri = "file://{folder.parent if place == "/.." else folder}"\n')

    assert told.startswith("twinlake.toml:2: lake.uri: ")


def test_a_lake_may_be_named_that_is_where_it_would_be_anyway(tmp_path: Path) -> None:
    found = load(written(tmp_path, f'[lake]\nuri = "file://{tmp_path}/lake"\n'), {})

    assert found.lake.uri.endswith("/lake")


@pytest.mark.parametrize(
    "value",
    ["-Djavax.net.ssl.trustStorePassword=hunter2", "-Da=b -Dmy.secret=hunter2", "--access-key=hunter2"],
)
def test_options_hold_no_secret_whoever_gives_them(tmp_path: Path, value: str) -> None:
    """They stand on the command line of the driver or of executors."""
    conf = f'{{ "spark.executor.extraJavaOptions" = "{value}" }}'

    by_file = refused(tmp_path, f"[spark]\nconf = {conf}\n")
    by_environment = refused(tmp_path, "", {"TWINLAKE_SPARK_CONF": conf})

    assert all("command lines" in told for told in (*by_file, *by_environment))


def test_the_file_of_the_clusters_secret_is_looked_at_like_any_other(tmp_path: Path) -> None:
    text = '[spark.conf]\n"spark.authenticate.secret.file" = "shared"\n'
    (missing,) = refused(tmp_path, text)
    held(tmp_path, "shared", mode=0o644)
    (open_to_all,) = refused(tmp_path, text)
    (tmp_path / "shared").chmod(0o600)

    assert "there is no file" in missing and "chmod 600" in open_to_all
    assert load(written(tmp_path, text), {}).spark.conf == {SECRET_FILE: str(tmp_path / "shared")}


def test_a_path_is_no_secret_whatever_it_leads_to(tmp_path: Path) -> None:
    conf = {
        "spark.kubernetes.authenticate.driver.oauthTokenFile": "/var/token",
        "spark.executor.extraJavaOptions": "-Djavax.net.ssl.keyStorePasswordFile=/etc/pass -Dx=y",
    }
    text = "[spark.conf]\n" + "".join(f'"{name}" = "{value}"\n' for name, value in conf.items())

    assert load(written(tmp_path, text), {}).spark.conf == conf


def test_the_clusters_secret_in_the_file_is_refused_with_a_remedy_that_helps(tmp_path: Path) -> None:
    """It was to be given in the environment, where it is refused, too."""
    (told,) = refused(tmp_path, '[spark.conf]\n"spark.authenticate.secret" = "hunter2"\n')

    assert told.endswith(f'name a file that holds it by "{SECRET_FILE}"')


def test_a_file_that_is_named_is_looked_at_although_a_variable_goes_before_it(tmp_path: Path) -> None:
    text = f'[kafka]\n{SASL}username = "u"\npassword_file = "password"\n'
    environ = {"TWINLAKE_KAFKA_PASSWORD": "from outside"}
    (missing,) = refused(tmp_path, text, environ)
    held(tmp_path, mode=0o644)
    (open_to_all,) = refused(tmp_path, text, environ)
    held(tmp_path)
    login = load(written(tmp_path, text), environ).kafka.login("ingest")

    assert "there is no file" in missing and "chmod 600" in open_to_all
    assert login.client()["sasl.password"] == "from outside"
    assert "password_file" not in login.shown()


def test_a_clusters_secret_of_nobody_is_told_like_any_other(tmp_path: Path) -> None:
    """It ended the command with a traceback."""
    (told,) = refused(tmp_path, '[spark.conf]\n"spark.authenticate.secret.file" = "~no-such-user/secret"\n')

    assert told.startswith("twinlake.toml:1: spark.conf: ~no-such-user/secret: there is no such user")


def test_a_mistake_brings_along_no_error_that_shows_the_values(tmp_path: Path) -> None:
    environ = {"TWINLAKE_KAFKA_PASSWORD": "hunter2", "TWINLAKE_KAFKA_SECURITY": "TLS"}

    with pytest.raises(UsageError) as told:
        load(written(tmp_path, ""), environ)

    assert told.value.__cause__ is None and told.value.__context__ is None


def test_what_is_in_this_process_s_environment_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KAFKA", "LIMITS", "ORIGINS", "TWINLAKE_PORTS_SQL", "twinlake_spark_master"):
        monkeypatch.setenv(name, "7")

    assert load(tmp_path / "twinlake.toml", {}) == Values()


def test_the_model_has_the_sections_that_a_file_may_have() -> None:
    kept = {name: one.annotation for name, one in Values.model_fields.items() if name in SECTIONS}

    assert kept == {name: section.kind for name, section in SECTIONS.items()}
    assert {*Values.model_fields} - {*SECTIONS} == {"origins", "lacks"}


@pytest.mark.parametrize("inside", ["", "backups", "lake/b", "x/../backups", "..", "../.."])
def test_backups_in_the_data_directory_or_around_it_are_refused(tmp_path: Path, inside: str) -> None:
    home = tmp_path / "home"
    home.mkdir()

    (said,) = refused(home, f"[backup]\nfolder = '{home / inside}'")

    assert said.startswith("twinlake.toml:2: backup.folder: ") and f"is in {home}, or around it" in said


def test_backups_go_beside_the_data_directory_or_into_a_store_and_nowhere_unless_set(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()

    beside = load(written(home, f"[backup]\nfolder = '{home}-backups'\nkeep = 3"), {}).backup
    store = load(home / "none.toml", {"TWINLAKE_BACKUP_FOLDER": "hdfs://n:1/backups/"}).backup
    by_uri = load(written(home, "[backup]\nfolder = 'file:///srv/backups'"), {}).backup
    unset = load(home / "none.toml", {}).backup

    assert (beside.place, beside.keep) == (Path(f"{home}-backups"), 3)
    assert (store.place, store.keep) == (Remote("hdfs://n:1/backups"), 7)
    assert by_uri.place == Path("/srv/backups")
    assert unset.place is None
