"""The console's part: what it is started with, and that nothing beyond loopback goes without TLS."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.project import OURS, PROJECT
from twinlake.base.errors import UsageError
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Settings
from twinlake.services import console
from twinlake.services.addresses import publish
from twinlake.services.part import Context

TLS = """[console]
listen = "0.0.0.0"
name = "twinlake.example.com"
certificate_file = "c.pem"
key_file = "k.pem"
"""


def with_settings(context: Context, text: str) -> Context:
    (context.settings.home / "twinlake.toml").write_text(text)
    return replace(context, settings=Settings(home=context.settings.home, in_project=OURS))


def make_certificate(folder: Path) -> None:
    """For a name that this machine does not resolve."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=twinlake.example.com", "-keyout", "k.pem", "-out", "c.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    (folder / "k.pem").chmod(0o600)


def test_without_settings_it_is_plain_on_loopback_and_no_secret_is_on_its_command_line(
    context: Context,
) -> None:
    services = publish(context)
    (part,) = console.parts()
    assert part.command

    words = part.command(context).arguments

    assert services.console_url == f"http://127.0.0.1:{context.ports['console']}"
    assert words[words.index("--listen") + 1] == "127.0.0.1" and "--certificate" not in words
    held = " ".join([*words, *part.command(context).environ.values()])
    assert services.console_password not in held and services.api_token not in held


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[console]\nlisten = "0.0.0.0"\n', "passwords would be readable on the way"),
        ('[console]\nlisten = "::"\nname = "a.b"\n', "passwords would be readable on the way"),
        ('[console]\ncertificate_file = "c.pem"\n', "certificate_file and key_file need each other"),
        (TLS.replace('name = "twinlake.example.com"\n', ""), "give name"),
        ('[console]\nlisten = "everywhere"\n', "it must be an IP address"),
    ],
)
def test_what_would_be_open_is_refused(context: Context, text: str, why: str) -> None:
    for name in ("c.pem", "k.pem"):
        (context.settings.home / name).touch(mode=0o600)

    with pytest.raises(UsageError) as refused:
        _ = with_settings(context, text).settings.values

    assert why in refused.value.why


def test_the_process_itself_refuses_to_listen_beyond_loopback_without_tls(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twinlake.console", "--home", str(tmp_path), "--users", str(tmp_path / "u"),
         "--project", str(PROJECT), "--port", "1", "--listen", "0.0.0.0"],
        cwd=PROJECT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip

    assert done.returncode == 2 and "it has no certificate" in done.stderr


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed; it makes the certificate")
def test_with_a_certificate_it_speaks_tls_alone_and_is_known_by_it(context: Context) -> None:
    home = context.settings.home
    make_certificate(home)
    secured = with_settings(context, TLS.replace("0.0.0.0", "127.0.0.1"))
    secured = replace(secured, services=publish(secured))
    (part,) = console.parts()
    assert part.command
    command = part.command(secured)
    process = subprocess.Popen(command.arguments, cwd=PROJECT, env={**command.environ})
    try:
        answer = wait_for("it", lambda: part.probe(secured), 90, unready=(httpx.HTTPError, OSError))
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{context.ports['console']}/health", trust_env=False)
    finally:
        process.terminate()
        process.wait(20)

    assert answer == f"https://twinlake.example.com:{context.ports['console']}"
