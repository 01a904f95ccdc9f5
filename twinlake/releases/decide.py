"""What people say of a plan before it goes live: who has made it, who rejects it, who may approve it."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, replace
from typing import Any

import structlog

from twinlake.base.errors import DeniedError, UsageError
from twinlake.base.job import SOMEBODY, Asker
from twinlake.base.times import format_moment
from twinlake.config.sections import OTHERS
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Plan, Rejected
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.timeline import newest_plans

journal = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """That a plan is rejected."""

    plan: str
    rejected: Rejected

    def to_json(self) -> dict[str, Any]:
        return {"plan": self.plan, **asdict(self.rejected)}


CHANGES_WHAT_WAITS = ("plan", "gate", "promote", "reject", "rollback")
"""Jobs after which another plan may wait for its approval, or none."""


class Approval:
    """Which plan waits for a person's word, as of the last look."""

    def __init__(self) -> None:
        self.waiting: dict[str, Any] | None = None

    def look(self, lake: OpenLake) -> None:
        """What cannot be read is as it was, and noted."""
        try:
            self.waiting = _waiting(lake)
        except Exception:
            journal.exception("it is not known whether a plan waits for its approval")


def _waiting(lake: OpenLake) -> dict[str, Any] | None:
    """The newest plan, where it has passed its gate and only a person's word is missing: its id as `plan`,
    since when it waits, and the `tables` that it changes."""
    for found in newest_plans(lake, 1):
        if found.state == "passed" and found.gate is not None and found.live is not None:
            tables = [one["table"] for one in found.summary()["changes"]]
            return {"plan": found.plan.id, "since": found.gate.at, "tables": tables}
    return None


deciding = threading.Lock()
"""Of whoever changes what is said of a plan, or makes one live: a plan is live, or it is rejected."""


def note_proposal(lake: OpenLake, plan: Plan, asker: Asker) -> None:
    """The plan is made, or made again, by this person: who was first has proposed it; it is not rejected."""
    with deciding:
        known = lake.plans.decided(plan.id)
        now = replace(known, proposed_by=known.proposed_by or asker.by, rejected=None)
        if now != known:
            lake.plans.save_decided(plan.id, now)


def reject(lake: OpenLake, plan: Plan, by: str, reason: str | None) -> Decision:
    """It cannot go live until it is planned again; UsageError for one that is live already."""
    with deciding:
        live = release_log.live(lake.path)
        if live is not None and live.plan == plan.id:
            raise UsageError(
                f"plan {plan.id} cannot be rejected", f"it is live, as release {live.number}",
                "go back to the release before it: `twinlake rollback`",
            )  # fmt: skip
        rejected = Rejected(by=by, at=format_moment(lake.clock()), reason=reason)
        lake.plans.save_decided(plan.id, replace(lake.plans.decided(plan.id), rejected=rejected))
    return Decision(plan=plan.id, rejected=rejected)


def refuse_unapproved(lake: OpenLake, plan: Plan, approved_by: str, asker: Asker) -> None:
    """DeniedError for a plan that these people may not make live; none for one that is live already."""
    live = release_log.live(lake.path)
    if live is None or live.plan != plan.id:
        _refuse_rejected(lake, plan)
        _refuse_own(lake, plan, approved_by, asker)


def _refuse_rejected(lake: OpenLake, plan: Plan) -> None:
    """One that somebody has rejected."""
    if (said := lake.plans.decided(plan.id).rejected) is not None:
        raise DeniedError(
            f"plan {plan.id} is rejected",
            f"{said.by} did so at {said.at}: {said.reason or 'no reason was given'}",
            "change the definitions, or plan it again with `twinlake plan`",
        )  # fmt: skip


def _refuse_own(lake: OpenLake, plan: Plan, approved_by: str, asker: Asker) -> None:
    """One of their own, where the setting asks for another person than who has proposed the plan.

    Names are compared without regard to case. The first release of a lake replaces nothing, so nobody else
    has to look at it.
    """
    if lake.settings.values.releases.approval_by != OTHERS or plan.release_before is None:
        return
    if approved_by.lower() == SOMEBODY:
        raise DeniedError(
            f"plan {plan.id} cannot be approved", "nobody knows who approves it",
            "approve it as a person with a name",
        )  # fmt: skip
    proposed_by = lake.plans.decided(plan.id).proposed_by
    if proposed_by is None:
        raise DeniedError(
            f"plan {plan.id} cannot be approved", "nobody knows who has made it, so anybody may be the one",
            "plan it again with `twinlake plan`",
        )  # fmt: skip
    if proposed_by.lower() in {name.lower() for name in (approved_by, asker.by) if name}:
        raise DeniedError(
            f"{proposed_by} cannot approve plan {plan.id}",
            'they have made it, and the setting `approval_by` is "others"', "have somebody else approve it",
        )  # fmt: skip
