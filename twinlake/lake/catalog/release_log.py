"""Release: a set of (table -> version) made live together, and the release log that says which one is live.

The log is the Delta table `<lake>/releases`. A release is one commit, whose metadata holds it whole, so that
any process reads it from `_delta_log` without an engine; its rows say the same for whoever queries them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from twinlake.base.errors import DifferenceError, NotFoundError, UsageError
from twinlake.base.location import Location
from twinlake.lake.delta import delta
from twinlake.lake.storage import store
from twinlake.lake.storage.damage import damaged

APP_ID = "releases"
NOBODY = "the lake's format"
"""Who approves a release that changes how rows are stored, and none that is shown: nobody has to."""
ReleaseKind = Literal["initial", "promote", "rollback"]


@dataclass(frozen=True, kw_only=True)
class Release:
    """`positions`: per table, the log position that its version had reached at the moment of the commit."""

    number: int
    kind: ReleaseKind
    tables: dict[str, str]
    positions: dict[str, dict[str, int]] = field(default_factory=dict)
    created_at: str
    approved_by: str
    plan: str | None = None
    git_commit: str | None = None
    restores: int | None = None
    """For a rollback: the number of the release whose mapping this one repeats."""
    job: str | None = None
    """The job that committed it: the same job, run again after a kill, knows its own release."""
    reason: str | None = None
    """Why somebody rolled back."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Release:
        return cls(**stored)


def releases_path(lake: Location) -> Location:
    return lake / "releases"


def releases(lake: Location) -> list[Release]:
    """Every release so far, oldest first; read from the commits themselves, without an engine."""
    path = releases_path(lake)
    found = []
    for version in range(delta.newest_version(path) + 1):
        commit = delta.commit(path, version)
        if commit is None:  # none is ever cleaned up
            file = delta.commit_file(path / delta.LOG_FOLDER, version)
            raise damaged(file, "it is not there, and later commits are", "the commit before them")
        if commit.metadata.get("kind") == "release":
            found.append(Release.from_json(commit.metadata["release"]))
    return sorted(found, key=lambda release: release.number)


def live(lake: Location) -> Release | None:
    """The release that readers see, None before the first one."""
    path = releases_path(lake)
    commit = delta.newest_commit(path, lambda metadata: metadata.get("kind") == "release", kept=True)
    return Release.from_json(commit.metadata["release"]) if commit else None


def commit(lake: Location, release: Release) -> Release:
    """Makes the release live in one commit, or raises DifferenceError because another one came first."""
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError

    schema = pa.schema(
        [
            pa.field("release", pa.int64(), nullable=False),
            pa.field("kind", pa.string()),
            pa.field("table", pa.string()),
            pa.field("version", pa.string()),
            pa.field("position", pa.string()),
            pa.field("plan", pa.string()),
            pa.field("approved_by", pa.string()),
            pa.field("git_commit", pa.string()),
            pa.field("restores", pa.int64()),
            pa.field("created_at", pa.string()),
            pa.field("reason", pa.string()),
        ]
    )
    path = str(releases_path(lake))
    before = live(lake)
    if not delta.exists(releases_path(lake)):
        store.make_folder(releases_path(lake))
        # The commits are the record: they are never cleaned up.
        forever = {
            "delta.logRetentionDuration": "interval 36500 days",
            "delta.enableExpiredLogCleanup": "false",
        }
        DeltaTable.create(path, schema, mode="ignore", configuration=forever)
    table = DeltaTable(path)
    if release.number != (before.number if before else 0) + 1:
        raise moved(release.number - 1, before)
    rows = [
        {
            "release": release.number, "kind": release.kind, "table": name, "version": version,
            "position": json.dumps(release.positions.get(name, {}), sort_keys=True), "plan": release.plan,
            "approved_by": release.approved_by, "git_commit": release.git_commit,
            "restores": release.restores, "created_at": release.created_at,
            "reason": release.reason,
        }
        for name, version in sorted(release.tables.items())
    ]  # fmt: skip
    metadata = json.dumps({"kind": "release", "release": release.to_json()}, sort_keys=True)
    properties = CommitProperties(
        custom_metadata={"userMetadata": metadata},
        # The same transaction of two promotes at once: Delta lets one of them win.
        app_transactions=[Transaction(APP_ID, release.number)],
    )
    try:
        write_deltalake(
            table, pa.Table.from_pylist(rows, schema), mode="append", commit_properties=properties,
            schema_mode="merge",  # a table of before has no reasons
        )  # fmt: skip
    except CommitFailedError as error:
        raise moved(release.number - 1, live(lake)) from error
    written = live(lake)
    if written != release:
        raise moved(release.number - 1, written)
    return release


def moved(expected: int | None, found: Release | None) -> DifferenceError:
    """Production is not what the plan was made against."""
    now = f"release {found.number} ({found.kind}, {found.created_at})" if found else "no release"
    was = f"release {expected}" if expected else "no release"
    return DifferenceError(
        "production has moved since the plan",
        f"the plan was made against {was}, now there is {now}",
        "make a new plan with `twinlake plan`; versions that are built already are used again",
    )


def rollback_target(history: list[Release], to: int | None = None) -> Release:
    """The release whose mapping a rollback restores: the named one, else the one before what is live.

    A rollback counts as the release it restored, so rolling back twice goes further back, never forward.
    """
    if not history:
        raise UsageError("nothing can be rolled back", "there is no release yet", "promote one first")
    numbered = {release.number: release for release in history}
    current = history[-1]
    origin = current
    while origin.restores is not None:
        origin = numbered[origin.restores]
    target = numbered.get(origin.number - 1 if to is None else to)
    if target is None and to is None:
        raise UsageError(
            f"release {current.number} cannot be rolled back",
            f"it is the mapping of release {origin.number}, the first one",
            'name a release (`--to`, in Airflow "To release"), or change the definitions and promote',
        )
    if target is None:
        raise NotFoundError(
            f"there is no release {to}",
            f"the newest is {current.number}",
            "name one that `twinlake releases` shows",
        )
    if target.tables == current.tables:
        raise UsageError(
            f"release {target.number} is live already",
            f"its tables are those of release {current.number}",
            'name another one that `twinlake releases` shows (`--to`, in Airflow "To release")',
        )
    return target
