"""What the lake server can be asked for of a release: a model per kind of job, beside `job_models.py`."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from twinlake.server.job_models import Name, OfVersion, Params, Person, Reason

Excused = Annotated[str, Field(pattern=r"^\w+=.*\S.*$", max_length=800)]
Unwitnessed = Annotated[
    tuple[Excused, ...],
    Field(
        max_length=1000, strict=False,  # JSON has lists
        title="Unwitnessed", description="NAME=REASON: go live with a table that no other engine can "
        "evaluate, or a topic whose ingest none has witnessed; the reason is kept",
    ),
]  # fmt: skip
OfPlan = Annotated[Name, Field(description="the plan's id")]
Approver = Annotated[Person, Field(description="who approves")]
SAMPLE_RECORDS = 100_000
Definitions = Annotated[
    dict[str, dict[str, Any]] | None,
    Field(
        min_length=1,
        description="all tables as {name: definition as JSON}; those of the project beside the lake "
        "server unless given",
    ),
]


class CheckParams(Params):
    """Say what is wrong with the project's definitions, contracts and schemas; nothing is changed."""

    code: Name = Field(description="of which code of Twinlake's an answer is asked: its hash")
    roots: tuple[Name, ...] = Field(
        min_length=1, max_length=100, strict=False,  # JSON has lists
        description="the folders of the project, and of those whose tables it reads",
    )  # fmt: skip


class PlanParams(Params):
    """Say what the project's definitions would change against the live release, and its cost."""

    definitions: Definitions = None
    git_commit: str | None = Field(
        default=None, min_length=1, max_length=64, description="where `definitions` come from"
    )
    tables: list[Name] | None = Field(
        default=None, min_length=1, description="only these tables, and what reads them"
    )
    remove: list[Name] | None = Field(
        default=None, min_length=1, description="live tables that go; their definitions must be gone"
    )

    @model_validator(mode="after")
    def _of_definitions(self) -> Self:
        if self.git_commit is not None and self.definitions is None:
            raise ValueError(
                "git_commit is that of `definitions`; without them the lake server reports its own"
            )
        return self


class BuildParams(Params):
    """Build the plan's green versions from the log and certify them; then they are maintained like blue."""

    plan: OfPlan


class DiffParams(Params):
    """Compare two versions of a table at one position: blue with green."""

    table: Name = Field(description="the table")
    blue: OfVersion = None
    green: Name | None = Field(default=None, description="this version; the newest one unless given")
    plan: Name | None = Field(default=None, description="the plan's id; its report shows the difference")


class SampleParams(Params):
    """Say within seconds what a changed definition would change, judged on some of the log's records.

    Nothing is built or stored. Exact counts over all of history are those of `build` and `diff`.
    """

    table: Name = Field(description="the table whose definition is judged against its live version")
    definitions: Definitions = None
    records: int = Field(
        default=SAMPLE_RECORDS, ge=1, le=10_000_000,
        description="so many records at most: the newest batches of each topic that together hold no more; "
        "always the newest one",
    )  # fmt: skip
    keys: int | None = Field(
        default=None, ge=1, le=1_000_000,
        description="instead, every record of so many of the table's keys, drawn among those of the newest "
        "records",
    )  # fmt: skip


class GateParams(Params):
    """Ask what must hold before the plan may go live; the answer, passed or not, is the result."""

    plan: OfPlan
    unwitnessed: Unwitnessed = ()
    reasons_by: Person | None = Field(
        default=None, description="who gives the reasons; needed with `unwitnessed`"
    )


class PromoteParams(Params):
    """Make the plan live in one commit; refused if production moved or the gate fails."""

    plan: OfPlan
    approved_by: Approver
    unwitnessed: Unwitnessed = ()


class RejectParams(Params):
    """Say that a plan shall not go live; it cannot, until it is planned again."""

    plan: OfPlan
    rejected_by: Person = Field(description="who rejects it")
    reason: Reason | None = Field(default=None, description="why; who promotes it all the same sees it")


class RollbackParams(Params):
    """Make an earlier release's versions live again in one commit; they were maintained all the time.

    Later plans leave out what this takes back until its definition changes, or it is named.
    """

    to: int | None = Field(
        default=None, ge=1, title="To release",
        description="this release; the one before the live one unless given",
    )  # fmt: skip
    live: int | None = Field(
        default=None, ge=1, title="Live release",
        description="only while this release is live; whichever is, unless given",
    )  # fmt: skip
    reason: Reason | None = Field(
        default=None, description="why; `twinlake releases` and later plans show it"
    )
    approved_by: Approver


class RetireParams(Params):
    """Stop maintaining the versions that no kept release uses; their files are deleted six hours later."""

    keep: int = Field(
        default=3, ge=1, title="Keep releases",
        description="so many of the newest releases can be gone back to",
    )  # fmt: skip


class RestructureParams(Params):
    """Build tables again that are stored as no new version is; the lake server asks for it by itself."""
