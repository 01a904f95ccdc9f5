"""Own files: secrets and certificates that settings name by path, which are not Twinlake's to change, and
when a new content of each holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from twinlake.config.login import ROLES
from twinlake.config.values import Values

CONNECTS, SENDS, REFUSED, STARTS = (
    "with the next connection",
    "with the next message",
    "once the receiver refuses the one of before",
    "once the console has started again: `twinlake down`, `twinlake up`",
)
_WHEN = {
    "kafka": CONNECTS, "registry": CONNECTS, "alarms": SENDS, "lineage": REFUSED, "metrics": SENDS,
    "console": STARTS,
}  # fmt: skip
_NO_SECRET = {"ca_file"}


@dataclass(frozen=True, kw_only=True)
class OwnFile:
    """One file that a setting names."""

    setting: str
    file: str
    holds: str
    """When a new content does."""


def own_files(values: Values) -> list[OwnFile]:
    """Of all settings that name a secret or a certificate, in the order of the settings."""
    return [
        OwnFile(setting=f"[{name}] {key}", file=str(file), holds=_WHEN[name.split(".")[0]])
        for name, section in _sections(values)
        for key, file in _files(section)
    ]


def _sections(values: Values) -> Iterator[tuple[str, Any]]:
    for name in _WHEN:
        yield name, getattr(values, name)
    for role in ROLES:
        if own := values.kafka.own.get(role):
            yield f"kafka.{role}", own


def _files(section: Any) -> Iterator[tuple[str, Path]]:
    for one in fields(section):
        value = getattr(section, one.name)
        if isinstance(value, Path) and one.name.endswith("_file") and one.name not in _NO_SECRET:
            yield one.name, value
