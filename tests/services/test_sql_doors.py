"""The SQL server's doors for other machines: closed without settings, and never without a certificate."""

from __future__ import annotations

import stat
from dataclasses import replace

import pytest

from tests.project import OURS
from twinlake.base.errors import UsageError
from twinlake.config.settings import Settings
from twinlake.services import sql
from twinlake.services.addresses import publish
from twinlake.services.part import Context

OPEN = """[sql]
listen = "0.0.0.0"
name = "twinlake.example.com"
certificate_file = "c.pem"
key_file = "k.pem"
"""


def with_settings(context: Context, text: str) -> Context:
    home = context.settings.home
    (home / "c.pem").write_text("the chain")
    (home / "k.pem").write_text("the key")
    (home / "k.pem").chmod(0o600)
    (home / "twinlake.toml").write_text(text)
    return replace(context, settings=Settings(home=home, in_project=OURS))


def words(context: Context) -> list[str]:
    (part,) = sql.parts()
    assert part.command
    return list(part.command(context).arguments)


def test_without_settings_it_listens_on_loopback_alone(context: Context) -> None:
    context = replace(context, services=publish(context))

    assert "--listen" not in words(context) and sql.elsewhere(context) == ()


def test_with_them_it_gets_copies_that_it_alone_can_read(context: Context) -> None:
    context = with_settings(context, OPEN)
    context = replace(context, services=publish(context))
    (part,) = sql.parts()
    part.prepare(context)
    scratch = context.folders.of("sql")

    said = words(context)

    assert (
        said[said.index("--listen") + 1] == "0.0.0.0"
        and said[said.index("--key") + 1] == f"{scratch}/key.pem"
    )
    assert (scratch / "key.pem").read_text() == "the key" and (scratch / "certificate.pem").exists()
    assert stat.S_IMODE((scratch / "key.pem").stat().st_mode) == 0o600
    assert str(context.settings.home / "k.pem") not in said
    (shown,) = sql.elsewhere(context)
    assert f"https://twinlake.example.com:{context.ports['sql_tls']}" in shown and ";ssl=true" in shown
    part.prepare(with_settings(context, ""))
    assert not (scratch / "key.pem").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[sql]\nlisten = "0.0.0.0"\n', "give name and certificate_file and key_file"),
        (OPEN.replace('key_file = "k.pem"\n', ""), "give key_file"),
        (OPEN.replace('listen = "0.0.0.0"\n', ""), "without listen"),
        (OPEN.replace("0.0.0.0", "everywhere"), "it must be an IP address"),
    ],
)
def test_what_would_be_open_or_of_no_use_is_refused(context: Context, text: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        _ = with_settings(context, text).settings.values

    assert why in refused.value.why
