"""The kind of job that turns a table's changelog on and off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field, model_validator

from twinlake.base.job import Run
from twinlake.lake.open_lake import OpenLake
from twinlake.server.job_kinds import JobKind, Name, Params


class ChangelogParams(Params):
    table: Name
    topic: str | None = Field(default=None, min_length=1, max_length=249)
    stop: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> ChangelogParams:
        if self.stop == (self.topic is not None):
            raise ValueError("give either a topic, or stop")
        return self


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A changelog as `/status` shows it."""

    status: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return self.status


def do_changelog(lake: OpenLake, params: ChangelogParams, run: Run) -> Changed:
    """Send the changes of a live table to a compacted topic from now on, or no more."""
    if params.topic is None:
        return Changed(status=lake.changelogs.stop(lake, params.table))
    return Changed(status=lake.changelogs.start(lake, params.table, params.topic, run))


KINDS = {"changelog": JobKind(params=ChangelogParams, handler=do_changelog, urgent=True)}
