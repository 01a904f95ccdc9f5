"""Tasks ask the lake server of the connection `twinlake_default`, else that of their installation."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException

from twinlake.airflow import connection as lake_connection
from twinlake.base.errors import UsageError
from twinlake.config.settings import Services

GIVEN: dict[str, Any] = {
    "host": "127.0.0.1", "port": 8100, "schema": "http", "password": "secret", "extra": None
}  # fmt: skip


def of(**changed: Any) -> lake_connection.Lake:
    return lake_connection.of_connection(SimpleNamespace(**{**GIVEN, **changed}))


def url_of(**changed: Any) -> str:
    return str(of(**changed).client._http.base_url)


@pytest.mark.parametrize(
    ("changed", "url"),
    [
        ({}, "http://127.0.0.1:8100"),
        ({"schema": None}, "http://127.0.0.1:8100"),
        ({"host": "::1".join("[]")}, "http://[::1]:8100"),
        ({"host": "localhost", "port": None}, "http://localhost"),
        ({"host": "lake.example", "schema": "https"}, "https://lake.example:8100"),
        ({"host": "https://lake.example/", "port": None, "schema": None}, "https://lake.example"),
        ({"host": "https://lake.example/twinlake", "port": None}, "https://lake.example/twinlake/"),
        ({"host": "lake.example", "extra": '{"plain_http": true}'}, "http://lake.example:8100"),
    ],
)
def test_the_fields_of_the_connection_are_the_address(changed: dict[str, Any], url: str) -> None:
    assert url_of(**changed) == url


def test_the_password_is_the_token() -> None:
    found = of()

    assert found.client._http.headers["Authorization"] == "Bearer secret"
    assert "secret" not in repr(found)


def test_a_browser_may_reach_reports_elsewhere() -> None:
    elsewhere = of(extra='{"report_url": "https://data.example/lake"}')

    assert elsewhere.report_link("p") == "https://data.example/lake/reports/p"
    assert of().report_link("p") is None


def test_a_browser_may_reach_the_console_elsewhere() -> None:
    elsewhere = of(extra='{"console_url": "https://console.example/"}')

    assert elsewhere.console_link("/plans/p") == "https://console.example/plans/p"
    assert elsewhere.console_link("/jobs", key="a/b c") == "https://console.example/jobs?key=a%2Fb+c"
    assert of().console_link("/jobs") is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"host": None}, "not a host name"),
        ({"host": "https://:secret@lake.example"}, "not a host name"),
        ({"host": "lake.example?x=secret"}, "not a host name"),
        ({"schema": "ftp"}, "neither http nor https"),
        ({"password": None}, "api_token"),
        ({"host": "10.0.0.7"}, "unencrypted"),
        ({"host": "lake.example"}, "unencrypted"),
        ({"host": "127.0.0.1.example"}, "unencrypted"),
        ({"extra": '{"report": "https://data.example"}'}, "report: Extra inputs are not permitted"),
        ({"extra": '{"report_url": "javascript:alert(1)"}'}, "report_url"),
        ({"extra": '{"console_url": "javascript:alert(1)"}'}, "console_url"),
        ({"extra": "{"}, "Invalid JSON"),
        ({"schema": "https", "extra": '{"ca_file": "/nowhere/ca.pem"}'}, "/nowhere/ca.pem"),
    ],
)
def test_a_connection_that_names_no_lake_server_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        of(**changed)

    assert said in str(refused.value) and refused.value.remedy
    assert "secret" not in str(refused.value)


@pytest.fixture
def without_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> Any:
        assert name == "twinlake_default"
        raise AirflowNotFoundException(f"The conn_id `{name}` isn't defined")

    monkeypatch.setattr(lake_connection.BaseHook, "get_connection", none)


def test_without_a_connection_the_installation_s_own_server_is_asked(
    without_connection: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = {"sql_url": "http://127.0.0.1:2/", "console_url": "http://127.0.0.1:3"}
    Services(api_url="http://127.0.0.1:1", api_token="own", **own).save(tmp_path / "services.json")
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))

    found = lake_connection.lake()

    assert found.client._http.headers["Authorization"] == "Bearer own"
    assert found.console_link("/plans/p") == "http://127.0.0.1:3/plans/p"
    assert found.report_link("p") == "http://127.0.0.1:2/reports/p"


@pytest.mark.parametrize("home", [True, False], ids=["an empty data directory", "no project"])
def test_with_neither_it_is_said_what_to_add(
    without_connection: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: bool
) -> None:
    if home:
        monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    else:
        monkeypatch.delenv("TWINLAKE_HOME", raising=False)
        monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match="Airflow has no connection twinlake_default") as refused:
        lake_connection.lake()

    assert "AIRFLOW_CONN_TWINLAKE_DEFAULT" in refused.value.remedy


def test_the_connection_goes_before_the_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Services(api_url="http://127.0.0.1:1", api_token="own").save(tmp_path / "services.json")
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_TWINLAKE_DEFAULT", json.dumps({"conn_type": "generic", **GIVEN}))

    found = lake_connection.lake()

    assert found.client._http.headers["Authorization"] == "Bearer secret"
