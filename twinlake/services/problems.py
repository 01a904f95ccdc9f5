"""Problems: what somebody has to look at, with why and what to do; `twinlake status` and the console say
it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from twinlake.base.errors import DifferenceError, TwinlakeError


class Problem(NamedTuple):
    """A thing with its error, why and remedy. `kind` is what sort of thing has which trouble; `about` is the
    table or topic, where it is about one."""

    kind: str
    about: str | None
    title: str
    error: dict[str, str]


def problems(
    parts: list[dict[str, Any]], lake: Mapping[str, Any], supervisor: TwinlakeError | None = None
) -> list[Problem]:
    """What somebody has to look at; `supervisor` is what is wrong with that."""
    found = [Problem("part", None, part["part"], part["error"]) for part in parts if part["error"]]
    found += [Problem("supervisor", None, "supervisor", supervisor.to_json())] if supervisor else []
    found += [
        Problem(kind, topic["name"], f"topic {topic['name']}", one)
        for topic in lake["topics"]
        for kind, errors in (("topic", [topic["error"]]), ("warning", topic.get("warnings", ())))
        for one in errors
        if one
    ]
    found += [
        Problem("version", version["table"], f"{version['table']} {version['version']}",
                _of_version(version, lake.get("release")))
        for version in lake["versions"]
        if version["stalled"] and version["error"] and not version.get("paused")
    ]  # fmt: skip
    for certificate in lake["certificates"]:
        title = f"{certificate['table']} {certificate['version']}"
        if not certificate["equal"]:
            wrong = _difference(certificate).to_json()
            found.append(Problem("certificate", certificate["table"], title, wrong))
        elif certificate.get("disputed"):
            found.append(Problem("witness", certificate["table"], title, _unlike(certificate).to_json()))
    found += [
        Problem("witness", one["topic"], f"topic {one['topic']}", _mistaken(one).to_json())
        for one in lake.get("topic_certificates", ())
        if one["disputed"]
    ]
    found += [
        Problem("changelog", one["table"], f"changelog of {one['table']}", one["error"])
        for one in lake["changelogs"]
        if one["error"]
    ]
    found += [
        Problem("webhook", one["table"], f"webhook of {one['table']}", one["error"])
        for one in lake.get("webhooks", ())
        if one["error"]
    ]
    stalled = {one.about for one in found if one.kind == "version"}
    found += [
        Problem("published", one["table"], f"published {one['table']}", one["error"])
        for one in lake.get("published", ())
        if one["error"] and not (one["state"] == "stalled" and one["table"] in stalled)
    ]
    known = {error.get("file") for *_, error in found}
    damaged = [error for error in lake["damaged"] if error["file"] not in known]
    found += [Problem("damage", None, "lake", error) for error in damaged]
    if spark_error := (lake.get("spark") or {}).get("error"):
        found.append(Problem("spark", None, "spark", spark_error))
    if lake.get("error"):
        found.append(Problem("lake server", None, "lake server", lake["error"]))
    return found


def _of_version(version: Mapping[str, Any], release: Mapping[str, Any] | None) -> dict[str, str]:
    """Of one that was replaced already, what is left to do."""
    error: dict[str, str] = version["error"]
    live = (release or {}).get("tables", {}).get(version["table"])
    if not release or not live or _build(live) <= _build(version["version"]):
        return error
    remedy = (
        f"no reader sees it: release {release['number']} has {live}; `twinlake retire --keep 1` lets it go, "
        "and with it what could be rolled back to"
    )
    return {**error, "remedy": remedy}


def _build(version: str) -> int:
    return int(version.rpartition("-")[2])


def _difference(certificate: dict[str, Any]) -> DifferenceError:
    if raises := certificate.get("raises"):
        return DifferenceError(
            f"it cannot be read whole, by the certificate of {certificate['created_at']}", raises,
            f"write the expression so that it never raises (`twinlake check` says how), then release it: "
            f"`twinlake plan`, `build`, `promote`; `twinlake verify {certificate['table']}` looks again",
        )  # fmt: skip
    return DifferenceError(
        "speed and batch differ", f"the certificate of {certificate['created_at']} says so",
        f"`twinlake verify {certificate['table']}` names the rows; with --repair it replaces them",
    )  # fmt: skip


def _unlike(certificate: dict[str, Any]) -> DifferenceError:
    """Speed and batch agree, another engine does not, or has not said."""
    return DifferenceError(
        certificate["proof"], f"the certificate of {certificate['created_at']} says so",
        f"`twinlake verify {certificate['table']}` shows rows of both sides and their records",
    )  # fmt: skip


def _mistaken(certificate: dict[str, Any]) -> DifferenceError:
    """A second decoder does not find what ingest has written, or has not said."""
    return DifferenceError(
        certificate["words"], f"the topic's certificate of {certificate['created_at']} says so",
        "find out who is right by the documentation; `twinlake replay` validates a quarantine again, and "
        "`twinlake verify` of a table of the topic looks again",
    )  # fmt: skip
