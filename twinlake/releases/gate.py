"""Gate: what must hold before a plan's green versions may go live. It judges them, not their differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import TimedOutError, UsageError
from twinlake.base.job import Run
from twinlake.base.times import format_moment, parse_moment
from twinlake.base.waiting import wait_for
from twinlake.batch.certify import new_certificate
from twinlake.batch.failing_view import raising
from twinlake.batch.witnessing_topics import witness_topics
from twinlake.config.sections import WITNESS_OFF
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.failing_record import REMEDY
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.catalog.topic_certificates import TopicCertificate
from twinlake.lake.catalog.version import Pin, Version
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.build import certify_first, green_version
from twinlake.releases.expectations import expectation_checks
from twinlake.releases.gate_checks import (
    Check,
    Excuse,
    Gate,
    certificate_check,
    columns_check,
    ingest_check,
    is_recent,
    lag_check,
    production_check,
    witness_check,
)
from twinlake.topics.contract_file import load_contract
from twinlake.topics.short_contract import empty, filled
from twinlake.topics.topic import contract_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LAG_PATIENCE_S = 30.0
"""The gate waits so long for a green version that is just catching up."""
_OF_CONTRACT = ("columns", "readable", "expectation")
LOG_WAIT_S = 60.0
"""A busy ingest takes a micro-batch or two to reach what the broker has now; one that stands still never."""


NONE: Mapping[str, str] = {}


def ask(
    lake: OpenLake,
    plan: Plan,
    run: Run,
    recent: bool = False,
    unwitnessed: Mapping[str, str] = NONE,
    by: str = "",
) -> Gate:
    """The gate of a plan, stored beside it. `unwitnessed` are tables that may go live although no other
    engine can evaluate them, each with the reason of `by`; UsageError for one that the plan does not switch.

    With `recent`, reasons of the last time still count for what was refused then, and what the contracts
    expect is not asked again of a version that met it a few minutes ago at the position where it still is;
    production, certificates and lags are asked every time. Over empty logs there is nothing to compare, and
    no row to ask about: columns and production decide.
    """
    last = lake.plans.gate(plan.id, Gate) if recent else None
    excused = dict(last.excused) if last else {}
    _refuse_others(lake, plan, unwitnessed)
    met = _recently_met(lake, last)
    live = release_log.live(lake.path)
    checks = [production_check(plan, live)]
    asked_of: dict[str, list[Any]] = {}
    for number, change in enumerate(plan.switched):
        run.check_cancelled()
        run.progress(number, len(plan.switched), "tables", f"asking about {change.table}")
        green = green_version(lake, plan, change.table)
        if green is None:
            detail = f"it is not built: run `twinlake build {plan.id}`"
            checks.append(Check(table=change.table, name="version", passed=False, detail=detail))
            continue
        broker_lag = _broker_lag(lake, green, run)
        if live is None:
            certify_first(lake, green, run)  # its logs may have been empty when it was built
        checks.append(recent_certificate(lake, green, run))
        found = _witnessed(lake, green, run, again=not recent)
        if found is not None:
            if found.witness and found.witness.answer.is_refused and change.table in unwitnessed:
                excused[change.table] = Excuse.of(found.witness.answer, unwitnessed[change.table], by)
            policy = lake.settings.values.proof.witness
            checks.append(witness_check(green, found, policy, excused.get(change.table)))
        checks += [broker_lag, _lag(lake, green, run)]
        pin = lake.versions.pin(green, run)
        asked_of[change.table] = [green.name, pin.position]
        known = met.get(change.table)
        if known and known[0] == asked_of[change.table]:
            checks += known[1]
        else:
            checks += _contract_checks(lake, green, pin)
    for one in _ingests(lake, plan, run):
        if one.answer.is_refused and one.topic in unwitnessed:
            excused[one.key] = Excuse.of(one.answer, unwitnessed[one.topic], by)
        checks.append(ingest_check(one, lake.settings.values.proof.witness, excused.get(one.key)))
    gate = Gate(
        plan=plan.id, at=format_moment(lake.clock()), checks=tuple(checks), asked_of=asked_of,
        excused=excused,
    )  # fmt: skip
    lake.plans.save_gate(plan.id, gate.to_json())
    return gate


def renew(lake: OpenLake, plan: Plan, run: Run) -> None:
    """Make what takes long in a gate, which is quick to ask then: certificates, another engine's answers."""
    for change in plan.switched:
        green = green_version(lake, plan, change.table)
        if green is not None:
            recent_certificate(lake, green, run)
            _witnessed(lake, green, run, again=True)
    _ingests(lake, plan, run)


def recent_certificate(lake: OpenLake, version: Version, run: Run) -> Check:
    """An equal certificate that has become old is made again; a missing or unequal one is not."""
    now = lake.clock()
    found = lake.certificates.newest(version.table, version.name)
    if found is None and not any(lake.logs[topic].end() for topic in version.topics):
        detail = "its logs are empty: there is nothing to compare"
        return Check(table=version.table, name="certificate", passed=True, detail=detail)
    if found and found.equal and not is_recent(_age_seconds(found.created_at, now)):
        new_certificate(lake, version, run)
        now = lake.clock()
        found = lake.certificates.newest(version.table, version.name)
    return certificate_check(version, found, _age_seconds(found.created_at, now) if found else 0.0)


def _witnessed(lake: OpenLake, version: Version, run: Run, again: bool) -> Certificate | None:
    """The newest certificate, with what another engine says of its position; None where no engine is asked,
    or there is nothing to compare. With `again` it is asked once more where it has failed."""
    found = lake.certificates.newest(version.table, version.name)
    if lake.settings.values.proof.witness == WITNESS_OFF or found is None:
        return None
    said = found.witness
    if found.equal and (
        said is None or said.position != found.position or (again and said.answer.has_failed)
    ):
        found = new_certificate(lake, version, run)
    return found


def _ingests(lake: OpenLake, plan: Plan, run: Run) -> list[TopicCertificate]:
    """Of each topic upstream once, what a second decoder says of its ingest; nothing of an empty log."""
    if lake.settings.values.proof.witness == WITNESS_OFF:
        return []
    topics = [topic for topic in _upstream(lake, plan) if lake.logs[topic].end()]
    return witness_topics(lake, topics, run)


def _upstream(lake: OpenLake, plan: Plan) -> set[str]:
    greens = (green_version(lake, plan, change.table) for change in plan.switched)
    return {topic for green in greens if green is not None for topic in green.topics}


def _refuse_others(lake: OpenLake, plan: Plan, unwitnessed: Mapping[str, str]) -> None:
    switched = [change.table for change in plan.switched]
    known = {*switched, *(_upstream(lake, plan) if unwitnessed else ())}
    for name in unwitnessed:
        if name not in known:
            raise UsageError(
                f"{name!r} is not a table that plan {plan.id} switches, nor a topic of one",
                f"it switches {', '.join(switched) or 'none'}",
                "name one of them, or a topic upstream, as NAME=REASON, or leave it out",
            )


def _age_seconds(text: str, now: datetime) -> float:
    return (now - parse_moment(text)).total_seconds()


def _broker_lag(lake: OpenLake, version: Version, run: Run) -> Check:
    """The version's logs get what the broker has now: a topic that stands still must not look fresh."""
    ends = {topic: lake.ingests[topic].broker_ends() for topic in version.topics}

    def asked() -> Check:
        behind = {topic: lake.ingests[topic].behind(held) for topic, held in ends.items()}
        lacking = ", ".join(
            f"{records:,} records of topic {topic}" for topic, records in behind.items() if records
        )
        if not lacking:
            detail = "its logs have what the broker has"
            return Check(table=version.table, name="lag", passed=True, detail=detail)
        errors = [error.what for topic in ends if (error := lake.ingests[topic].error)]
        detail = "; ".join([f"{lacking} are not in the log after {LOG_WAIT_S:g} s", *errors])
        return Check(table=version.table, name="lag", passed=False, detail=detail)

    return _patiently(asked, f"the logs of {version}", LOG_WAIT_S, run)


def _lag(lake: OpenLake, version: Version, run: Run) -> Check:
    def asked() -> Check:
        health = next(
            one for one in lake.versions.health() if (one.table, one.version) == (version.table, version.name)
        )
        return lag_check(health)

    return _patiently(asked, f"{version} to catch up", LAG_PATIENCE_S, run)


def _patiently(asked: Callable[[], Check], what: str, limit_s: float, run: Run) -> Check:
    """The check as soon as it passes, or as it is when the time is over."""

    def passed() -> Check | None:
        check = asked()
        return check if check.passed else None

    try:
        return wait_for(what, passed, limit_s, run, every_s=0.5)
    except TimedOutError:
        return asked()


def _recently_met(lake: OpenLake, gate: Gate | None) -> dict[str, tuple[list[Any], list[Check]]]:
    """By table, of what its contract was asked in a gate that passed not long ago, and the checks."""
    if not gate or not gate.passed:
        return {}
    if not is_recent(_age_seconds(gate.at, lake.clock())):
        return {}
    return {
        table: (of, [check for check in gate.checks if check.table == table and check.name in _OF_CONTRACT])
        for table, of in gate.asked_of.items()
    }


def _contract_checks(lake: OpenLake, green: Version, pin: Pin) -> list[Check]:
    file = contract_file(green.table, *lake.settings.sources)
    written = load_contract(file) if file.exists() else empty(green.table, file)
    opened = lake.versions.opened(green)
    view = opened.view(pin)
    types = dict(view.dtypes)
    contract = written if written.is_topic else filled(written, types, opened.definition.view_keys)
    columns = columns_check(opened.definition, contract, types)
    if not columns.passed or not any(pin.position.values()):
        return [columns]
    found, kept = [columns], view
    if isinstance(opened, MaintainedVersion) or opened.reads:
        kept = view.persist()  # small beside the logs, and asked once for each expectation
    try:
        if isinstance(opened, LogView):
            found.append(_readable(opened, pin, kept))
        return [*found, *expectation_checks(contract, kept)] if found[-1].passed else found
    finally:
        kept.unpersist()


def _readable(view: LogView, pin: Pin, rows: DataFrame) -> Check:
    """A version of a view kind computes nothing before it is read: here all of it is, as the pin has it."""
    found = raising(view, pin, rows)
    detail = f"{found.words}; {REMEDY}" if found else "no expression raises"
    return Check(table=view.definition.name, name="readable", passed=found is None, detail=detail)
