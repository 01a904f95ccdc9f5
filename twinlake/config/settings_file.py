"""Reads `twinlake.toml` and the environment's words for it, and refuses what cannot be meant.

`TWINLAKE_<SECTION>_<KEY>` goes before the file; neither need exist. All mistakes are told at once.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from twinlake.base.address import is_loopback
from twinlake.base.errors import UsageError
from twinlake.base.files import one_line, read_secret
from twinlake.base.location import located
from twinlake.config.sections import (
    PLAINTEXT,
    SASL_SSL,
    SECRET_FILE,
    SECTIONS,
    SSL,
    Kafka,
    Lake,
    Login,
    Registry,
    Values,
    names_secret,
)

PREFIX = "TWINLAKE_"
_SECRETS = ("password", "secret", "token", "passphrase", "credential")
OPEN_TO_OTHERS = stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP


OF_HOME = (
    "lake", "checkpoints", "kafka", "registry", "airflow", "sql", "access", "run", "logs", "demo", "bench",
    "services.json", "gallery.json",
)  # fmt: skip
"""What is made in $TWINLAKE_HOME, and goes with it."""


def overrides(environ: Mapping[str, str]) -> dict[str, str]:
    """What the environment says of settings; an empty variable says nothing."""
    heads = tuple(f"{PREFIX}{name.upper()}_" for name in SECTIONS)
    return {name: value for name, value in environ.items() if name.startswith(heads) and value}


def without_overrides(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without them: for those who must not come near anything of somebody else's."""
    told = overrides(environ)
    return {name: value for name, value in environ.items() if name not in told}


def load(file: Path, environ: Mapping[str, str], folder: Path | None = None) -> Values:
    """The settings of one installation; UsageError names every mistake with its place and its remedy.

    Relative paths begin at `folder`, that of the file unless given.
    """
    reading = _Reading(file=file, folder=folder or file.parent, environ=overrides(environ))
    made = reading.values()
    if not reading.mistakes:
        reading.mistakes += _inconsistent(made, reading)
    if reading.mistakes:
        raise _wrong(file, reading.mistakes)
    return replace(made, lacks=tuple(_lacking(made, reading)))


def refuse_incomplete(file: Path, made: Values) -> None:
    """UsageError where a secret is lacking that the services cannot be started without."""
    if made.lacks:
        raise _wrong(file, made.lacks)


def _wrong(file: Path, mistakes: Sequence[str]) -> UsageError:
    count = len(mistakes)
    return UsageError(
        "the settings are wrong" + ("" if count == 1 else f" in {count} places"),
        "\n".join(mistakes),
        "mend them, then ask `twinlake doctor`; `twinlake doctor --example` shows every key",
        {"file": str(file)},
    )


@dataclass(kw_only=True)
class _Reading:
    file: Path
    folder: Path
    environ: Mapping[str, str]
    mistakes: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Every variable that there could be."""
    conf_in_file: Mapping[str, Any] = field(default_factory=dict)
    """Settings of Spark's as far as the file gives them, and not the environment."""

    def values(self) -> Values:
        found = self._read()
        self._refuse_unknown(found, SECTIONS, "")
        made = {name: self._section(kind, name, found.get(name, {})) for name, kind in SECTIONS.items()}
        for name in sorted(set(self.environ) - self.known):
            self._wrong(name, f"there is no such setting{_nearest(name, self.known)}")
        return Values(**made, origins=self.origins)

    def place(self, name: str) -> str:
        """Where a setting was given, or would have been."""
        origin = self.origins.get(name, "")
        return origin if origin.startswith(PREFIX) else self._line(name)

    def _line(self, name: str) -> str:
        line = self.lines.get(name)
        return f"{self.file.name}:{line}: {name}" if line else f"{self.file.name}: {name}"

    def _wrong(self, place: str, what: str) -> None:
        self.mistakes.append(f"{place}: {what}")

    def _read(self) -> dict[str, Any]:
        try:
            text = self.file.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            why = str(error.strerror if isinstance(error, OSError) else error)
            raise self._unread("cannot be read", why, "mend the file or its rights") from error
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            remedy = "texts stand in quotes, one `key = value` on each line, each key and section once"
            raise self._unread("is no TOML", str(error), remedy) from error
        self.lines = lines_of(text)
        return found

    def _unread(self, what: str, why: str, remedy: str) -> UsageError:
        return UsageError(f"{self.file} {what}", why, remedy, {"file": str(self.file)})

    def _refuse_unknown(self, found: Mapping[str, Any], known: Mapping[str, Any], within: str) -> None:
        for name in found:
            full = f"{within}{name}"
            if name in known:
                continue
            word = "section" if isinstance(found[name], dict) and not within else "key"
            secret = f"{name}_file" in known or name.lower().endswith(_SECRETS)
            if secret and within:
                self._wrong(self._line(full), _inline(full, name, known))
            else:
                self._wrong(self._line(full), f"there is no such {word}{_nearest(name, known)}")

    def _section(self, kind: type, name: str, found: Any) -> Any:
        if not isinstance(found, dict):
            self._wrong(self._line(name), f"it is a section: write [{name}], and its keys below")
            found = {}
        settable = {one.name: one for one in fields(kind) if "secret" not in one.metadata}
        self._refuse_unknown(found, settable, f"{name}.")
        made: dict[str, Any] = {}
        for one in settable.values():
            full = f"{name}.{one.name}"
            if inner := one.metadata.get("section"):
                made[one.name] = self._inner(inner, full, found.get(one.name))
            else:
                made.update(self._value(one, full, found))
        for one in fields(kind):
            if "secret" in one.metadata:
                holder = one.metadata["secret"]
                made[one.name] = self._secret(one, name, made.get(holder))
                if f"{name}.{one.name}" in self.origins:
                    made[holder] = None  # the environment goes before what the file names
        return kind(**made)

    def _inner(self, kind: type, name: str, found: Any) -> Any:
        head = f"{_variable(name)}_"
        made = self._section(kind, name, {} if found is None else found)
        is_external = found is not None or any(variable.startswith(head) for variable in self.environ)
        return made if is_external else None

    def _value(self, one: Field[Any], name: str, found: Mapping[str, Any]) -> dict[str, Any]:
        variable = _variable(name)
        self.known.add(variable)
        place, value = self._line(name), found.get(one.name)
        if one.name == "conf" and isinstance(value, dict):
            self.conf_in_file = value
        if (told := self.environ.get(variable)) is not None:
            place, value = variable, self._of_environment(one, told)
            if one.name == "conf" and isinstance(value, dict):
                value = {**self.conf_in_file, **value}
        if value is None:
            return {}
        self.origins[name] = place if place == variable else f"{self.file.name}:{self.lines.get(name, '?')}"
        try:
            parsed = one.metadata["kind"](value)
            if isinstance(parsed, Path):
                parsed = self.folder / parsed
                _refuse_file(parsed, is_secret=one.name in _SECRET_FILES)
            if one.name == "conf" and SECRET_FILE in parsed:
                secret = self.folder / Path(parsed[SECRET_FILE]).expanduser()
                _refuse_file(secret, is_secret=True)
                parsed = {**parsed, SECRET_FILE: str(secret)}
            return {one.name: parsed}
        except ValueError as error:
            self._wrong(place, str(error))
            return {}

    def _of_environment(self, one: Field[Any], told: str) -> Any:
        """Numbers and tables as TOML has them; everything else is text."""
        if not str(one.type).startswith(("int", "Mapping")):
            return told
        try:
            return tomllib.loads(f"value = {told}")["value"]
        except tomllib.TOMLDecodeError:
            return told

    def _secret(self, one: Field[Any], within: str, held_in: Path | None) -> str:
        variable = _variable(f"{within}.{one.name}")
        self.known.add(variable)
        try:
            if variable in self.environ:
                self.origins[f"{within}.{one.name}"] = variable
                return one_line(self.environ[variable], "it")
            return read_secret(held_in) if held_in else ""
        except ValueError as error:
            given_by = one.name if variable in self.environ else one.metadata["secret"]
            self._wrong(self.place(f"{within}.{given_by}"), str(error))
            return ""


_SECRET_FILES = ("password_file", "key_file", "key_password_file")


def _refuse_file(file: Path, *, is_secret: bool) -> None:
    """ValueError for one that is not there, cannot be read, or is a secret that others can read."""
    try:
        is_there = file.exists()
    except OSError as error:
        raise ValueError(f"{file} cannot be looked at: {error.strerror}") from error
    if not is_there:
        raise ValueError(f"there is no file {file}")
    if not file.is_file():
        raise ValueError(f"{file} is no file")
    if not os.access(file, os.R_OK):
        raise ValueError(f"this user may not read {file}")
    if is_secret and file.stat().st_mode & OPEN_TO_OTHERS:
        raise ValueError(f"everybody on this machine can read {file}, or more than its owner can change it: "
                         f"`chmod 600 {file}`")  # fmt: skip


def _inconsistent(made: Values, reading: _Reading) -> Iterator[str]:
    """What each key allows, and no installation can mean together."""
    yield from _of_kafka(made.kafka, reading)
    yield from _of_registry(made.registry, reading)
    yield from _of_spark(reading)
    yield from _of_lake(made.lake, reading)
    if made.airflow.ca_file and not made.airflow.url:
        yield f"{reading.place('airflow.ca_file')}: without url nobody asks for it"
    taken: dict[int, str] = {}
    for one in fields(made.ports):
        port = getattr(made.ports, one.name)
        if port in taken:
            yield f"{reading.place(f'ports.{one.name}')}: {port} is {taken[port]}'s already"
        elif port:
            taken[port] = one.name


def _lacking(made: Values, reading: _Reading) -> Iterator[str]:
    """Passwords that nobody has given here."""
    logins = {
        "kafka": made.kafka,
        "kafka.producer": made.kafka.producer,
        "kafka.changelog": made.kafka.changelog,
    }
    for name, login in logins.items():
        if made.kafka.is_external and made.kafka.security == SASL_SSL and login and not login.password:
            yield (f"{reading.place(name)}: {SASL_SSL} needs a password: password_file, or "
                   f"{_variable(name)}_PASSWORD in the environment")  # fmt: skip
    if made.registry.username and not made.registry.password:
        yield (f"{reading.place('registry')}: username needs a password: password_file, or "
               f"{_variable('registry.password')} in the environment")  # fmt: skip


def _of_kafka(kafka: Kafka, reading: _Reading) -> Iterator[str]:
    logins: dict[str, Login] = {"kafka": kafka}
    for role in ("producer", "changelog"):
        if login := getattr(kafka, role):
            logins[f"kafka.{role}"] = login
    security = reading.place("kafka.security")
    if not kafka.is_external:
        if kafka.security == SSL:
            yield f"{security}: the broker that is started here knows {PLAINTEXT} and {SASL_SSL}"
        for name, login in logins.items():
            if login.names_someone or name != "kafka":
                yield (f"{reading.place(name)}: who clients are is for a Kafka of one's own, and "
                       "kafka.bootstrap_servers is missing; the broker that is started here makes its own "
                       "passwords")  # fmt: skip
        if kafka.ca_file:
            at = reading.place("kafka.ca_file")
            yield f"{at}: it is for a Kafka of one's own; bootstrap_servers is missing"
        return
    for name, login in logins.items():
        at = reading.place(name)
        if kafka.security == SASL_SSL:
            if not login.username:
                yield f"{at}: {SASL_SSL} needs username and password_file"
            if login.certificate_file or login.key_file:
                yield f'{at}: certificate_file and key_file are for security = "{SSL}"'
        if kafka.security == SSL:
            if not (login.certificate_file and login.key_file):
                yield f"{at}: {SSL} needs certificate_file and key_file"
            if login.username or login.password:
                yield f'{at}: username and password are for security = "{SASL_SSL}"'
        if kafka.security == PLAINTEXT and login.names_someone:
            yield f"{at}: with {PLAINTEXT} nobody asks who a client is; set security to {SASL_SSL} or {SSL}"
    if kafka.security == PLAINTEXT and kafka.ca_file:
        yield f"{reading.place('kafka.ca_file')}: with {PLAINTEXT} there are no certificates"
    if kafka.security != SASL_SSL and "kafka.mechanism" in reading.origins:
        yield f'{reading.place("kafka.mechanism")}: it is for security = "{SASL_SSL}"'


def _of_registry(registry: Registry, reading: _Reading) -> Iterator[str]:
    at = reading.place("registry")
    if not registry.is_external:
        if registry.username or registry.password or registry.ca_file:
            yield f"{at}: url is missing; the registry that is started here asks for nothing"
        return
    if registry.password and not registry.username:
        yield f"{at}: username and password_file need each other"
    is_https = registry.url.startswith("https://")
    if registry.ca_file and not is_https:
        yield f"{reading.place('registry.ca_file')}: the url is not https://, there is no certificate"
    if registry.password and not is_https and not is_loopback(urlsplit(registry.url).hostname or ""):
        yield f"{reading.place('registry.url')}: the password would be readable on the way; use https://"


def _of_spark(reading: _Reading) -> Iterator[str]:
    for name in reading.conf_in_file:
        if names_secret(name) and not name.lower().endswith(("provider", "file", "path")):
            other = f'name a file that holds it by "{SECRET_FILE}"'
            if f"{name}.file" != SECRET_FILE:
                other = f'give it in the environment: {_variable("spark.conf")}=\'{{ "{name}" = "..." }}\''
            yield f"{reading.place('spark.conf')}: {name} is a secret; {other}"


def _of_lake(lake: Lake, reading: _Reading) -> Iterator[str]:
    """In the home the lake has a place of its own; what is in another part's is deleted with that."""
    place = located(lake.uri) if lake.uri else None
    if not isinstance(place, Path):
        return
    home, folder = reading.folder.resolve(), place.resolve()
    within = folder.relative_to(home).parts if folder.is_relative_to(home) else ()
    if home.is_relative_to(folder) or (within[:1] and within[0] in OF_HOME and within != ("lake",)):
        yield (f"{reading.place('lake.uri')}: {place} is around {reading.folder}, where passwords are, or "
               "in what `twinlake reset` deletes there; name a folder elsewhere")  # fmt: skip


def _inline(full: str, name: str, known: Mapping[str, Any]) -> str:
    said = "a secret does not stand in this file, which people show each other"
    if f"{name}_file" not in known:
        return said
    return (f"{said}: write it into a file of its own (chmod 600) and name that by {name}_file, or "
            f"give {_variable(full)} in the environment; and change it, others may have seen it")  # fmt: skip


def _nearest(name: str, known: Mapping[str, Any] | set[str]) -> str:
    if close := difflib.get_close_matches(name, list(known), 1, 0.6):
        return f"; did you mean {close[0]}?"
    return f"; known: {', '.join(known)}" if isinstance(known, Mapping) else ""


def _variable(name: str) -> str:
    return PREFIX + name.upper().replace(".", "_")


def lines_of(text: str) -> dict[str, int]:
    """The line of each section and key, as far as a plain look tells: `kafka`, `kafka.security`."""
    found: dict[str, int] = {}
    within = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.\s\"'-]+?)\s*\]", line):
            within = re.sub(r"[\s\"']", "", header[1])
            found.setdefault(within, number)
        elif pair := re.match(r"\s*([\w.-]+)\s*=", line):
            found.setdefault(f"{within}.{pair[1]}" if within else pair[1], number)
    return found
