"""Secrets: all that a data directory and its settings hold or name, so that they can be kept out of a file.

They are found in the files as they are, even where one of these is torn or wrong: rather one too many than
one too few. A file that this user may not read raises UsageError, for nobody knows then what to keep out.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from twinlake.base.errors import UsageError
from twinlake.config.keys import PREFIX
from twinlake.config.sections import names_secret
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of

_LARGEST = 1 << 20
_PUBLIC = ("ca_file", "certificate_file")
"""Keys that end like those which name secrets, and name none."""
_LINE = re.compile(r"^\s*\"?([\w.]+)\"?\s*=\s*[\"'](.*?)[\"']", re.MULTILINE)
_TORN = re.compile(r'"(\w+)"\s*:\s*\[?\s*"((?:\\.|[^"\\])*)')
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{20,}")
_GUESSED = 16
"""A part of a webhook's path with so many characters may be what lets somebody in."""


def secrets_of(settings: Settings) -> dict[str, str]:
    """By what each is; UsageError where a file that holds some cannot be read."""
    found: dict[str, str] = {}
    for name, secret in _all(settings):
        if (secret := secret.strip()) and secret not in found.values():
            found[_unused(name, found)] = secret
    return found


def _all(settings: Settings) -> Iterator[tuple[str, str]]:
    home = settings.home
    yield from _of_services(home / "services.json")
    for file in (home / "twinlake.toml", folders_of(settings).active_settings):
        yield from _of_settings(file, home)
    yield from _of_environment(settings.overrides, home)
    for file in _files(home / "access"):
        for line in _text(file).splitlines():
            for part in re.findall(r"[0-9a-f]{32,}", line):
                yield f"a hash in {file.name}", part
    for file in _files(home / "airflow"):
        if names_secret(file.name) or file.name.endswith("_key"):
            yield from _of_file(f"Airflow's {file.name}", file)
    for file in _files(home / "kafka" / "tls"):
        yield from _of_key(file)


def _of_services(file: Path) -> Iterator[tuple[str, str]]:
    text = _text(file)
    try:
        yield from _named(json.loads(text) if text else {}, "")
    except ValueError:  # torn
        for key, value in _TORN.findall(text):
            yield from _named({key: value}, "")
            with suppress(ValueError):
                yield from _named({key: json.loads(f'"{value}"')}, "")


def _named(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """The texts below names like `api_token`, and what the files hold that other names say."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _named(one, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list):
        for one in value:
            yield from _named(one, name)
    elif isinstance(value, str):
        key = name.rpartition(".")[2]
        if _names_file(key):
            yield from _of_file(name, Path(value))
        elif names_secret(key):
            yield name, value


def _of_settings(file: Path, home: Path) -> Iterator[tuple[str, str]]:
    text = _text(file)
    try:
        found = list(_flat(tomllib.loads(text), ""))
    except tomllib.TOMLDecodeError:
        found = _LINE.findall(text)
    for name, value in found:
        yield from _of_key_and_value(name, value, home)


def _of_environment(environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        yield from _of_key_and_value(name.removeprefix(PREFIX).lower(), value, home)


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _flat(one, f"{name}.{key}".lstrip("."))
    elif isinstance(value, str):
        yield name, value


def _of_key_and_value(name: str, value: str, home: Path) -> Iterator[tuple[str, str]]:
    key = name.rpartition(".")[2]
    if key.endswith("webhook_url"):
        yield from _of_address(name, value)
    elif _names_file(key) or (names_secret(name) and name.endswith(("file", "path"))):
        yield from _of_file(name, home / Path(value).expanduser())
    elif names_secret(name):
        yield name, value


def _names_file(key: str) -> bool:
    return key.endswith("_file") and not key.endswith(_PUBLIC)


def _of_address(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Where a webhook is, which may let in whoever knows it."""
    parts = urlsplit(value)
    if parts.path.strip("/"):
        yield name, f"{parts.netloc}{parts.path}"
        for part in parts.path.split("/"):
            if len(part) >= _GUESSED:
                yield name, part


def _of_file(name: str, file: Path) -> Iterator[tuple[str, str]]:
    """Of one that holds a secret alone: each line; of one in JSON or PEM, what is secret there."""
    text = _text(file)
    if "PRIVATE KEY-----" in text:
        yield from _of_key(file)
        return
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, Mapping):
        yield from ((f"{name} of {key}", one) for key, one in found.items() if isinstance(one, str))
        return
    for line in text.splitlines():
        yield name, line
        if "=" in line:  # headers, as [metrics] has them: each is asked with what follows the name
            for header in line.split(","):
                value = header.partition("=")[2].strip()
                yield name, value
                yield name, value.rpartition(" ")[2]


def _of_key(file: Path) -> Iterator[tuple[str, str]]:
    """The lines of a private key; certificates are none."""
    is_key = False
    for line in _text(file).splitlines():
        if line.startswith("-----"):
            is_key = line.startswith("-----BEGIN") and "PRIVATE KEY" in line
        elif is_key and _KEY_LINE.fullmatch(line.strip()):
            yield f"the private key in {file.name}", line


def _files(folder: Path) -> list[Path]:
    """Those right in the folder; none where there is none."""
    try:
        return sorted(one for one in folder.iterdir() if one.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unknown(folder, error) from error


def _text(file: Path) -> str:
    """ "" where there is no such file; a secret is no larger than this reads."""
    try:
        with open(file, "rb") as opened:
            return opened.read(_LARGEST).decode("utf-8-sig", "replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""
    except OSError as error:
        raise _unknown(file, error) from error


def _unknown(place: Path, error: OSError) -> UsageError:
    return UsageError(
        "it is not known which secrets there are", f"{place} cannot be read: {error.strerror or error}",
        "use the account that has run `twinlake up`",
    )  # fmt: skip


def _unused(name: str, found: Mapping[str, str]) -> str:
    names = (name, *(f"{name} ({number})" for number in range(2, 10_000)))
    return next(one for one in names if one not in found)
