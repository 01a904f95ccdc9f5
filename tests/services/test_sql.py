"""The SQL server's part: what it is started with, and when it is not started at all."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker import free_port
from twinlake.base.errors import UsageError
from twinlake.base.passwords import verify
from twinlake.config import users
from twinlake.config.settings import Services
from twinlake.services import sql
from twinlake.services.addresses import publish
from twinlake.services.part import Context


def test_it_is_handed_a_hash_and_never_the_password(context: Context) -> None:
    services = publish(context)
    line = users.load(sql.users_file(context.folders))[sql.USER].line

    assert verify(line, *services.reader)
    assert not verify(line, services.sql_user, services.sql_password + "x")
    assert not verify(line, "root", services.sql_password)
    assert services.sql_password not in line


def test_without_a_view_of_its_own_it_is_not_started_unless_the_operator_accepts_that(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "namespaces", lambda: ())
    (part,) = sql.parts()

    with pytest.raises(UsageError, match="was not started") as refused:
        part.prepare(context)
    accepted = Path(refused.value.remedy.rsplit(" ", 1)[1])
    accepted.touch()
    part.prepare(context)

    assert part.command
    assert "unshare" not in part.command(context).arguments
    if sql.is_root():  # it runs as nobody, who comes to the lake through the home
        home = context.settings.home.stat()
        assert (home.st_gid, stat.S_IMODE(home.st_mode)) == (sql.NOBODY, 0o710)


def test_it_is_started_in_a_view_of_lake_hash_scratch_code_and_java(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "namespaces", lambda: ("unshare", "--mount"))
    (part,) = sql.parts()
    assert part.command

    words = part.command(context).arguments

    assert words[:2] == ("unshare", "--mount")
    shown = [Path(words[at + 1]) for at, word in enumerate(words) if word in ("--read", "--write")]
    home = context.settings.home
    assert {path for path in shown if path.is_relative_to(home)} == {
        home / "lake", home / "sql", home / "access"
    }  # fmt: skip


def test_words_tell_what_the_running_server_says_of_itself(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"user": 65534, "writes_lake": False, "sees_secrets": True, "has_capabilities": False}
    monkeypatch.setattr(sql, "get_json", lambda url: {"protection": told})

    assert sql.protection(context) == (
        "user 65534, cannot write the lake, WARNING: can read services.json, has no capabilities"
    )


def test_of_a_server_that_is_away_nothing_is_told(context: Context) -> None:
    away = Services(sql_url=f"http://127.0.0.1:{free_port()}")

    assert sql.protection(replace(context, services=away)) == ""
    assert sql.not_following(replace(context, services=away)) is None


def test_of_a_server_that_answers_and_cannot_follow_the_lake_it_is_told_why(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"release": 1, "ready": True, "error": "a feature of Delta is not known"}
    monkeypatch.setattr(sql, "get_json", lambda url: told)
    (part,) = sql.parts()

    error = part.error(context)
    following = {**told, "error": None}
    monkeypatch.setattr(sql, "get_json", lambda url: following)

    assert part.probe(context) == context.services.jdbc_url
    assert error is not None and part.error(context) is None
    assert "cannot follow the lake" in error.what and error.why == told["error"] and error.remedy


def test_of_a_server_that_hears_nothing_of_the_lake_server_it_is_told(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {"seconds": 34, "last_report": None, "why": "the lake server has not reported for 34 s"}
    told = {"release": 1, "ready": True, "error": None, "no_report": missing}
    monkeypatch.setattr(sql, "get_json", lambda url: told)
    (part,) = sql.parts()

    error = part.error(context)

    assert part.probe(context) == context.services.jdbc_url
    assert error is not None and error.why == missing["why"] and "twinlake logs lake" in error.remedy
