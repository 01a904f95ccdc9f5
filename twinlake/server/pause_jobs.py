"""The kinds of jobs that pause and resume a topic, table or changelog, and turn on and off what follows a
table: its changelog, what other engines read of it, and its webhook."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import structlog

from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.base.job import Run
from twinlake.base.times import format_moment
from twinlake.base.waiting import holding
from twinlake.lake.catalog.maintained_version import stores_rows
from twinlake.lake.catalog.paused import Kind, Paused
from twinlake.lake.catalog.version import Version
from twinlake.lake.changelog_request import ChangelogRequest
from twinlake.lake.open_lake import OpenLake
from twinlake.server.job_kind import JobKind
from twinlake.server.job_models import (
    ChangelogParams,
    PauseParams,
    PublishParams,
    ResumeParams,
    WebhookParams,
)

INGEST_WAIT_S = 300.0
journal = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Pausing:
    """What stands still now, or goes on; `changed` is False where it did so before. `paused` is as `/status`
    shows it, `position` where the versions of a table stand."""

    kind: Kind
    name: str
    changed: bool
    paused: Paused | None = None
    position: Mapping[str, dict[str, int]] | None = None

    def to_json(self) -> dict[str, Any]:
        paused = self.paused.to_json() if self.paused else None
        return {**vars(self), "paused": paused}


def do_pause(lake: OpenLake, params: PauseParams, run: Run) -> Pausing:
    kind, name = _pausable(lake, params.name, params.kind), params.name
    now = format_moment(lake.clock())
    made = Paused(kind=kind, name=name, since=now, by=params.by, reason=params.reason)
    if kind == "table":
        return _pause_table(lake, made, run)
    if before := lake.pauses.of(kind, name):
        return Pausing(kind=kind, name=name, changed=False, paused=before)
    if kind == "topic":
        _pause_topic(lake, made, run)
    else:
        lake.pauses.put(made)
        lake.changelogs.stand_still(name, run)
    journal.info("paused", **made.to_json())
    return Pausing(kind=kind, name=name, changed=True, paused=made)


def do_resume(lake: OpenLake, params: ResumeParams, run: Run) -> Pausing:
    kinds = [one.kind for one in lake.pauses.all() if one.name == params.name]
    if params.kind:
        kinds = [kind for kind in kinds if kind == params.kind]
    if not kinds:
        known = _kinds_of(lake, params.name, params.kind)
        if not known:
            raise _unknown(lake, params.name, params.kind)
        return Pausing(kind=known[0], name=params.name, changed=False)
    kind = _one_of(kinds, params.name)
    if kind == "topic":
        with holding(lake.ingest_lock, "another change of its ingest to end", INGEST_WAIT_S, run):
            lake.pauses.drop(kind, params.name)
            if ingest := lake.ingests.get(params.name):  # else its files are gone, or wrong
                ingest.start()
    else:
        lake.pauses.drop(kind, params.name)
    if kind == "table":
        lake.versions.go_on(params.name)
    journal.info("resumed", kind=kind, name=params.name, by=params.by)
    return Pausing(kind=kind, name=params.name, changed=True)


def _pause_topic(lake: OpenLake, made: Paused, run: Run) -> None:
    ingest = lake.ingests[made.name]
    with holding(lake.ingest_lock, "another change of its ingest to end", INGEST_WAIT_S, run):
        lake.pauses.put(made)  # first: killed from here on, it stands still after the next start
        try:
            ingest.stop()
        except TwinlakeError:  # it goes on, and is not said to stand still
            lake.pauses.drop(made.kind, made.name)
            raise


def _pause_table(lake: OpenLake, made: Paused, run: Run) -> Pausing:
    """What is built later takes steps: the release of another definition may be why the table is paused."""
    versions = [version for version in _stored(lake) if version.table == made.name]
    before = lake.pauses.of("table", made.name)
    changed = before is None or any(lake.pauses.of_version(version) is None for version in versions)
    if changed:
        made = replace(made, versions=tuple(version.name for version in versions))
        lake.pauses.put(made)
        journal.info("paused", **made.to_json())
    position = {version.name: lake.versions.stand_still(version, run) for version in versions}
    paused = lake.pauses.of("table", made.name)
    return Pausing(kind="table", name=made.name, changed=changed, paused=paused, position=position)


def _pausable(lake: OpenLake, name: str, kind: Kind | None) -> Kind:
    if kinds := _kinds_of(lake, name, kind):
        return _one_of(kinds, name)
    views = [version for version in lake.versions.living() if version.table == name]
    if views and kind in (None, "table"):
        reads = ", ".join([*(f"table {one}" for one in views[0].reads),
                           *(f"topic {one}" for one in views[0].topics)])  # fmt: skip
        raise UsageError(
            f"table {name} cannot be paused", "it stores no rows: it shows what it reads, as that is now",
            f"pause what it reads: {reads}",
        )  # fmt: skip
    raise _unknown(lake, name, kind)


def _one_of(kinds: list[Kind], name: str) -> Kind:
    if len(kinds) > 1:
        flags = " or ".join(f"--{kind}" for kind in kinds)
        raise UsageError(
            f"{name} is the name of more than one thing", f"there is a {' and a '.join(kinds)} of that name",
            f"say which is meant: {flags} (in a job: kind)",
        )  # fmt: skip
    return kinds[0]


def _unknown(lake: OpenLake, name: str, kind: Kind | None) -> NotFoundError:
    known = _known(lake, kind).items()
    why = "; ".join(f"{one}s: {', '.join(sorted(names)) or 'none'}" for one, names in known)
    what = kind or "topic, table or changelog"
    return NotFoundError(f"there is no {what} {name!r} that can be paused", why, "name one of them")


def _kinds_of(lake: OpenLake, name: str, kind: Kind | None) -> list[Kind]:
    return [one for one, names in _known(lake, kind).items() if name in names]


def _known(lake: OpenLake, kind: Kind | None) -> dict[Kind, set[str]]:
    """By kind, or of one, what can be paused."""
    found: dict[Kind, set[str]] = {
        "topic": set(lake.ingests),
        "table": {version.table for version in _stored(lake)},
        "changelog": {one["table"] for one in lake.changelogs.status()},
    }
    return {one: names for one, names in found.items() if kind in (None, one)}


def _stored(lake: OpenLake) -> list[Version]:
    """The living versions that take steps."""
    found = []
    for version in lake.versions.living():
        with suppress(TwinlakeError):  # one that could not be opened takes none
            if stores_rows(version):
                lake.versions.open_segment(version)
                found.append(version)
    return found


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A changelog, a published table or a webhook, as `/status` shows it."""

    status: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return self.status


def do_changelog(lake: OpenLake, params: ChangelogParams, run: Run) -> Changed:
    if params.stop:
        return Changed(status=lake.changelogs.stop(lake, params.table))
    if params.resend:
        return Changed(status=lake.changelogs.resend(lake, params.table))
    return Changed(status=lake.changelogs.start(lake, params.table, _requested(params), run))


def _requested(params: ChangelogParams) -> ChangelogRequest:
    return ChangelogRequest(**{one.name: getattr(params, one.name) for one in fields(ChangelogRequest)})


def do_publish(lake: OpenLake, params: PublishParams, run: Run) -> Changed:
    if params.stop:
        return Changed(status=lake.publications.stop(params.table))
    return Changed(status=lake.publications.start(lake, params.table, run))


def do_webhook(lake: OpenLake, params: WebhookParams, run: Run) -> Changed:
    if params.url is None:
        return Changed(status=lake.webhooks.stop(params.table))
    return Changed(status=lake.webhooks.start(lake, params.table, params.url, params.begin, run))


KINDS = {
    "pause": JobKind(params=PauseParams, handler=do_pause, urgent=True),
    "resume": JobKind(params=ResumeParams, handler=do_resume, urgent=True),
    "changelog": JobKind(params=ChangelogParams, handler=do_changelog, urgent=True),
    "publish": JobKind(params=PublishParams, handler=do_publish, urgent=True),
    "webhook": JobKind(params=WebhookParams, handler=do_webhook, urgent=True),
}
