"""The kind of job that turns a table's changelog on and off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinlake.base.job import Run
from twinlake.lake.open_lake import OpenLake
from twinlake.server.job_kinds import JobKind
from twinlake.server.job_models import ChangelogParams


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A changelog as `/status` shows it."""

    status: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return self.status


def do_changelog(lake: OpenLake, params: ChangelogParams, run: Run) -> Changed:
    if params.topic is None:
        return Changed(status=lake.changelogs.stop(lake, params.table))
    return Changed(status=lake.changelogs.start(lake, params.table, params.topic, run))


KINDS = {"changelog": JobKind(params=ChangelogParams, handler=do_changelog, urgent=True)}
