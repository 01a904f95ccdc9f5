"""What a lake server's status says, for whoever shows it: the command line, the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOTHING: Mapping[str, Any] = {
    "topics": [], "versions": [], "release": None, "certificates": [], "changelogs": [], "published": [],
    "webhooks": [],
    "spark": None, "damaged": [], "paused": [],
}  # fmt: skip
"""What a lake server says that does not answer."""


def state_of(version: Mapping[str, Any]) -> str:
    """One word or two."""
    states = {
        "lost": version["lost"], "paused": version.get("paused"), "stalled": version["stalled"],
        "reads its logs": version["step"] is None,
    }  # fmt: skip
    return next((name for name, holds in states.items() if holds), "maintained")


def versions_of(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every version that there is, the live ones first, each with whether it is `live`, its `state` and its
    newest `certificate`, or None."""
    live = (status["release"] or {}).get("tables", {})
    certificates = {(one["table"], one["version"]): one for one in status["certificates"]}
    found = [
        {
            **version, "live": live.get(version["table"]) == version["version"], "state": state_of(version),
            "certificate": certificates.get((version["table"], version["version"])),
        }
        for version in status["versions"]
    ]  # fmt: skip
    return sorted(found, key=lambda one: (not one["live"], one["table"], one["version"]))


def tables_of(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of a lake server's status, a table in each: table, version, live, state, behind_seconds and equal, the
    last two None where they are not known. Of one that is not live any of its versions."""
    found = dict[str, dict[str, Any]]()
    for one in versions_of({**NOTHING, **status}):
        newest = one["certificate"]
        found.setdefault(one["table"], {
            "table": one["table"], "version": one["version"], "live": one["live"], "state": one["state"],
            "behind_seconds": one["lag_seconds"], "equal": newest["equal"] if newest else None,
        })  # fmt: skip
    return sorted(found.values(), key=lambda one: one["table"])
