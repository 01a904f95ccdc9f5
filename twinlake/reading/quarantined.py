"""What readers are shown of a topic's quarantine: its records by verdict and reason, samples, and replays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from twinlake.base import quote
from twinlake.base.errors import NotFoundError, TwinlakeError
from twinlake.config.settings import Services
from twinlake.reading.client import PATIENT, Waiting, ask

GROUP = ("verdict", "reason", "contract")
SAMPLE_BYTES = 200
"""So much of a sample's key and value is shown."""


def quarantined(
    services: Services, topic: str, view: str, copies: str, limit: int,
    where: Callable[[str], str] = lambda column: "", waiting: Waiting = PATIENT,
) -> dict[str, Any]:  # fmt: skip
    """`records` by verdict; `groups` by reason and version of the contract, each with its newest `samples`,
    at most `limit`; `replayed`, by what was and became of the records.

    `view` and `copies` are the topic's views of what is in quarantine, and of what replays have made of it;
    `where` gives the WHERE of a column of reasons. A record with several reasons is in several groups.
    NotFoundError where there is no log of such a topic.
    """
    view, copies = (f"serve.{quote.name(name)}" for name in (view, copies))
    of, of_each, of_first = map(where, ("reasons", "array(reason)", "first_reasons"))
    names, record_id = ", ".join(GROUP), "epoch, partition, offset"
    each = f"(SELECT * FROM (SELECT *, explode(reasons) AS reason FROM {view}) {of_each})"
    newest = f"PARTITION BY {names} ORDER BY timestamp DESC, {record_id}"
    numbered = f"(SELECT *, row_number() OVER ({newest}) AS number FROM {each})"
    cut = ", ".join(f"substring({column}, 1, {SAMPLE_BYTES}) AS {column}" for column in ("key", "value"))
    asked = {
        "records": f"SELECT verdict, count(*) AS records FROM {view} {of} GROUP BY verdict",
        "groups": f"SELECT {names}, count(*) AS records, min(timestamp) AS first, max(timestamp) AS last "
        f"FROM {each} GROUP BY ALL ORDER BY records DESC, {names}",
        "samples": f"SELECT {names}, {record_id}, timestamp, {cut} FROM {numbered} WHERE number <= {limit} "
        "ORDER BY number",
        "replayed": "SELECT first_verdict, first_reasons, first_contract, verdict, reasons, contract, "
        "count(*) AS records, min(batch) AS first_batch, max(batch) AS last_batch "
        f"FROM {copies} {of_first} GROUP BY ALL ORDER BY first_batch, records DESC, first_reasons, reasons",
    }
    found = {what: _rows(services, topic, sql, waiting) for what, sql in asked.items()}
    samples = defaultdict(list)
    for sample in found["samples"]:
        shown = {name: value for name, value in sample.items() if name not in GROUP}
        samples[_group(sample)].append(shown)
    return {
        "topic": topic,
        "records": {one["verdict"]: one["records"] for one in found["records"]},
        "groups": [{**one, "samples": samples[_group(one)]} for one in found["groups"]],
        "replayed": found["replayed"],
    }


def _rows(services: Services, topic: str, sql: str, waiting: Waiting) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = ask(services, sql, waiting=waiting)["rows"]
    except TwinlakeError as error:
        if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
            raise NotFoundError(
                f"no quarantine of topic {topic!r} is shown",
                "the lake server has opened no log of such a topic",
                "check the name, see `twinlake status`; a new topic needs `twinlake reload`",
            ) from error
        raise
    return rows


def _group(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in GROUP)
