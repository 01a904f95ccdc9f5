"""`twinlake quarantine` and `replay`: what was refused and why; validating it again by a corrected contract.

The first asks the SQL server as any reader would, the second is a job of the lake server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

from twinlake.base.errors import ContractError, NotFoundError, UsageError
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, KEY, follow, lake_client
from twinlake.cli.options import whole
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.cli.query import waiting_for_server
from twinlake.config.settings import Services, Settings
from twinlake.lake import formats
from twinlake.lake.log import topic_views
from twinlake.lake.log.active_topics import active_topic
from twinlake.lake.log.quarantine import reason_sql, refuse_unknown
from twinlake.reading import quarantined as quarantine
from twinlake.reading.client import PATIENT, Waiting
from twinlake.server import outcomes
from twinlake.server.job_models import ReplayParams
from twinlake.topics.topic import load_topic
from twinlake.topics.verdict import meaning

TOPIC = Annotated[str, typer.Argument(help="the topic whose records were refused")]
REASON = Annotated[
    list[str] | None,
    typer.Option("--reason", help="only this reason, like not_allowed or not_allowed:status; repeatable"),
]


def register(app: typer.Typer) -> None:
    """Adds both commands."""
    app.command("quarantine")(quarantine_command)
    app.command("replay")(replay_command)


def quarantine_command(
    topic: TOPIC,
    reason: REASON = None,
    limit: Annotated[
        int,
        typer.Option(parser=whole(0, 100), metavar="NUMBER", help="samples of each group, the newest first"),
    ] = 3,
    as_json: AS_JSON = False,
) -> None:
    """Show what a topic has in quarantine, by reason and contract version, and what was replayed."""
    reasons = reason or []
    refuse_unknown(reasons)
    found = quarantined(load_settings().services(), topic, reasons, limit, waiting_for_server())
    if as_json:
        print_json(found)
    else:
        _show(found)


@asking(ReplayParams, arguments=("topic",))
def replay_command(
    *,
    asked: Asked,
    reasons: Annotated[list[str] | None, typer.Option("--reason", help="{about}; repeatable")] = None,
    key: KEY = None,
    as_json: AS_JSON = False,
) -> None:
    refuse_unknown(reasons or (), replays=True)
    topic = asked["topic"]
    if _is_edited(load_settings(), topic):
        tell(
            (f"contracts/{topic}.yaml says other things than the active contract, by which is judged: "
             "`twinlake reload` activates the file", "yellow")
        )  # fmt: skip
    client = lake_client()
    if reasons:
        asked["reasons"] = reasons
    job = follow(client, client.submit("replay", asked, key))
    result = job.succeeded()
    if as_json:
        print_json({"job": job.id, **result})
    else:
        say(outcomes.replayed(result, reasons or ()))


def quarantined(
    services: Services, topic: str, reasons: Sequence[str], limit: int, waiting: Waiting = PATIENT
) -> dict[str, Any]:
    """What readers are shown of a topic's quarantine, for these reasons or for any without them."""
    _, view, copies = topic_views.names(topic)

    def where(column: str) -> str:
        return f"WHERE {reason_sql(reasons, column)}" if reasons else ""

    return quarantine.quarantined(services, topic, view, copies, limit, where, waiting)


def _show(found: Mapping[str, Any]) -> None:
    total = sum(found["records"].values())
    if not total:
        say(f"{found['topic']}: nothing is in quarantine")
    else:
        parts = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(found["records"].items()))
        say(f"{found['topic']}: {total:,} in quarantine: {parts}")
        show_rows(
            ("reason", "contract", "records", "first", "last", "samples (epoch/partition/offset)"),
            (
                (one["reason"], one["contract"], f"{one['records']:,}", one["first"], one["last"],
                 _record_ids(one["samples"]))
                for one in found["groups"]
            ),
        )  # fmt: skip
        for reason in dict.fromkeys(one["reason"] for one in found["groups"]):
            if words := meaning(reason):
                say(f"  {reason}: {words}")
    if found["replayed"]:
        say("replayed:")
        show_rows(
            ("was", "by contract", "became", "by contract", "records", "batches"),
            (
                (_verdict(one["first_verdict"], one["first_reasons"]), one["first_contract"],
                 _verdict(one["verdict"], one["reasons"]), one["contract"], f"{one['records']:,}",
                 _span(one["first_batch"], one["last_batch"]))
                for one in found["replayed"]
            ),
        )  # fmt: skip


def _record_ids(samples: Iterable[Mapping[str, Any]]) -> str:
    return " ".join(f"{one['epoch']}/{one['partition']}/{one['offset']}" for one in samples)


def _verdict(verdict: str, reasons: Sequence[str]) -> str:
    return " ".join([verdict, *(reason for reason in reasons if reason not in (verdict, "already_seen"))])


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _is_edited(settings: Settings, topic: str) -> bool:
    """Whether the contract's file means something else than the active contract, or cannot be read."""
    formats.refuse_other(settings.lake)
    try:
        now = active_topic(settings.lake, topic).contract
        return load_topic(topic, *settings.sources).contract.fingerprint != now.fingerprint
    except ContractError:
        return True
    except (NotFoundError, UsageError):
        return False  # the lake server knows better why
