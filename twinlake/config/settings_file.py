"""Reads `twinlake.toml` and the environment's words for it, and refuses what cannot be meant.

`TWINLAKE_<SECTION>_<KEY>` goes before the file; neither need exist. All mistakes are reported at once.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import UsageError
from twinlake.config.keys import PREFIX, Key, Section, relative_to, variable_of
from twinlake.config.sections import PROJECT_SECTION, SECRET_FILE, SECTIONS, every_key, names_secret

if TYPE_CHECKING:
    from twinlake.config.values import Values

_SECRETS = ("password", "secret", "token", "passphrase", "credential")


def overrides(environ: Mapping[str, str]) -> dict[str, str]:
    """What the environment says of settings; an empty variable says nothing."""
    heads = tuple(f"{PREFIX}{name.upper()}_" for name in SECTIONS)
    return {name: value for name, value in environ.items() if name.startswith(heads) and value}


def without_overrides(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without them: for those who must not come near anything of somebody else's."""
    said = overrides(environ)
    return {name: value for name, value in environ.items() if name not in said}


def load(file: Path, environ: Mapping[str, str], folder: Path | None = None) -> Values:
    """The settings of one installation; UsageError names every mistake with its place and its remedy.

    Relative paths begin at `folder`, that of the file unless given.
    """
    from pydantic import ValidationError

    from twinlake.config.values import Values, inconsistencies, missing_secrets

    folder, reading = folder or file.parent, _Reading(file=file, environ=overrides(environ))
    of_file, of_environment = reading.of_file(), reading.of_environment()
    of_file["origins"] = reading.origins
    made, faults = None, []
    with relative_to(folder):
        try:
            made = Values.read(of_environment, of_file)
        except ValidationError as error:  # raised on it would show the values, secrets among them
            faults = error.errors(include_url=False, include_input=False)
    for fault in faults:
        reading.wrong(".".join(map(str, fault["loc"])), str(fault.get("ctx", {}).get("error", fault["msg"])))
    reading.refuse_unknown_variables()
    if made and not reading.mistakes:
        for name, what in inconsistencies(made, folder):
            reading.wrong(name, what)
    if not made or reading.mistakes:
        raise _wrong(file, reading.mistakes)
    lacks = tuple(f"{reading.place(name)}: {what}" for name, what in missing_secrets(made))
    return made.model_copy(update={"lacks": lacks})


def refuse_incomplete(file: Path, values: Values) -> None:
    """UsageError where a secret is lacking that the services cannot be started without."""
    if values.lacks:
        raise _wrong(file, values.lacks)


def _wrong(file: Path, mistakes: Sequence[str]) -> UsageError:
    count = len(mistakes)
    return UsageError(
        "the settings are wrong" + ("" if count == 1 else f" in {count} places"),
        "\n".join(mistakes),
        "fix them, then ask `twinlake doctor`; `twinlake doctor --example` shows every key",
        {"file": str(file)},
    )


@dataclass(kw_only=True)
class _Reading:
    """What both sources give, as far as it is known, and what is wrong there."""

    file: Path
    environ: Mapping[str, str]
    mistakes: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def place(self, name: str) -> str:
        """Where a setting was given, or would have been."""
        origin = self.origins.get(name, "")
        if origin.startswith(PREFIX):
            return origin
        line = self.lines.get(name)
        return f"{self.file.name}:{line}: {name}" if line else f"{self.file.name}: {name}"

    def wrong(self, name: str, what: str) -> None:
        self.mistakes.append(f"{self.place(name)}: {what}")

    def of_file(self) -> dict[str, Any]:
        """Every known key that the file has, by section."""
        try:
            text = self.file.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            why = str(error.strerror if isinstance(error, OSError) else error)
            raise self._unread("cannot be read", why, "fix the file or its rights") from error
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            remedy = "texts stand in quotes, one `key = value` on each line, each key and section once"
            raise self._unread("is not valid TOML", str(error), remedy) from error
        self.lines = lines_of(text)
        return self._known(found, SECTIONS, "")

    def of_environment(self) -> dict[str, Any]:
        """The same of the variables that there are."""
        made: dict[str, Any] = {}
        for name, one in every_key():
            variable = variable_of(name)
            if (said := self.environ.get(variable)) is None:
                continue
            self.origins[name] = variable
            *sections, key = name.split(".")
            values = made
            for section in sections:
                values = values.setdefault(section, {})
            values[key] = said if one.is_text else _as_in_file(said)
        return made

    def refuse_unknown_variables(self) -> None:
        known = {variable_of(name) for name, _ in every_key()}
        for name in sorted(set(self.environ) - known):
            self.mistakes.append(f"{name}: there is no such setting{nearest(name, known)}")

    def _unread(self, what: str, why: str, remedy: str) -> UsageError:
        return UsageError(f"{self.file} {what}", why, remedy, {"file": str(self.file)})

    def _known(
        self, found: Mapping[str, Any], keys: Mapping[str, Key | Section], within: str
    ) -> dict[str, Any]:
        secrets = {name for name, one in keys.items() if isinstance(one, Key) and one.is_secret}
        known = {name: one for name, one in keys.items() if name not in secrets}
        made: dict[str, Any] = {}
        for name, value in found.items():
            one, full = known.get(name), f"{within}{name}"
            if isinstance(one, Section) and isinstance(value, dict):
                made[name] = self._known(value, one.keys, f"{full}.")
            elif isinstance(one, Section):
                self.wrong(full, f"it is a section: write [{full}], and its keys below")
            elif one:
                made[name] = value
                self.origins[full] = f"{self.file.name}:{self.lines.get(full, '?')}"
                if full == "spark.conf" and isinstance(value, dict):
                    self._refuse_secrets(value)
            elif full == PROJECT_SECTION:
                whose = f"the {self.file.name} of the project's folder"
                self.wrong(full, f"[{full}] belongs in {whose}, not in that of a data directory")
            elif within and (name in secrets or name.lower().endswith(_SECRETS)):
                self.wrong(full, _inline(full, name, has_file=name in secrets))
            else:
                word = "section" if isinstance(value, dict) and not within else "key"
                self.wrong(full, f"there is no such {word}{nearest(name, known)}")
        return made

    def _refuse_secrets(self, conf: Mapping[str, Any]) -> None:
        for name in conf:
            if names_secret(name) and not name.lower().endswith(("provider", "file", "path")):
                other = f'give it in the environment: {variable_of("spark.conf")}=\'{{ "{name}" = "..." }}\''
                if f"{name}.file" == SECRET_FILE:
                    other = f'name a file that holds it by "{SECRET_FILE}"'
                self.wrong("spark.conf", f"{name} is a secret; {other}")


def _as_in_file(said: str) -> Any:
    """A number or a table as TOML has it; what is none is refused as text."""
    try:
        return tomllib.loads(f"value = {said}")["value"]
    except tomllib.TOMLDecodeError:
        return said


def _inline(full: str, name: str, *, has_file: bool) -> str:
    said = "a secret does not stand in this file, which people show each other"
    if not has_file:
        return said
    return (f"{said}: write it into a file of its own (chmod 600) and name that by {name}_file, or give "
            f"{variable_of(full)} in the environment; and change it, others may have seen it")  # fmt: skip


def nearest(name: str, known: Collection[str]) -> str:
    """What was meant by an unknown name, or of a map all that is known: the end of an error's sentence."""
    if close := difflib.get_close_matches(name, list(known), 1, 0.6):
        return f"; did you mean {close[0]}?"
    return f"; known: {', '.join(known)}" if isinstance(known, Mapping) else ""


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
