"""Problems: what somebody has to look at, with why and what to do; `twinlake status` and the console say
it."""

from __future__ import annotations

from typing import Any

from twinlake.base.errors import DifferenceError, TwinlakeError

Problem = tuple[str, dict[str, str]]
"""A thing, and its error with why and remedy."""


def problems(
    parts: list[dict[str, Any]], lake: dict[str, Any], supervisor: TwinlakeError | None = None
) -> list[Problem]:
    """What somebody has to look at; `supervisor` is what is wrong with that."""
    found = [(part["part"], part["error"]) for part in parts if part["error"]]
    found += [("supervisor", supervisor.to_json())] if supervisor else []
    found += [(f"topic {topic['name']}", topic["error"]) for topic in lake["topics"] if topic["error"]]
    found += [
        (f"topic {topic['name']}", one) for topic in lake["topics"] for one in topic.get("warnings", ())
    ]
    found += [
        (f"{version['table']} {version['version']}", version["error"])
        for version in lake["versions"]
        if version["stalled"] and version["error"] and not version.get("paused")
    ]
    found += [
        (f"{certificate['table']} {certificate['version']}", _difference(certificate).to_json())
        for certificate in lake["certificates"]
        if not certificate["equal"]
    ]
    found += [
        (f"{certificate['table']} {certificate['version']}", _unlike(certificate).to_json())
        for certificate in lake["certificates"]
        if certificate["equal"] and certificate.get("disputed")
    ]
    found += [
        (f"topic {one['topic']}", _mistaken(one).to_json())
        for one in lake.get("topic_certificates", ())
        if one["disputed"]
    ]
    found += [(f"changelog of {one['table']}", one["error"]) for one in lake["changelogs"] if one["error"]]
    known = {error.get("file") for _, error in found}
    found += [("lake", error) for error in lake["damaged"] if error["file"] not in known]
    if spark_error := (lake.get("spark") or {}).get("error"):
        found.append(("spark", spark_error))
    if lake.get("error"):
        found.append(("lake server", lake["error"]))
    return found


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
