"""Quarantine: what of a log is not valid by its latest verdict, and what replays have made of it, as SQL.

A replay appends copies: the record id, times and bytes of the original, and another verdict. The latest
of a record id counts; a record that is valid by it has left the quarantine. A `relation` is the log's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from twinlake.base import quote
from twinlake.base.errors import UsageError
from twinlake.topics.verdict import ALREADY_SEEN, EXPIRED, IGNORED, INVALID, REASONS, TOO_LATE, VALID

JUDGED_AGAIN = (INVALID, TOO_LATE)
"""The verdicts that a replay may change: a duplicate stays one, whatever the contract says."""
NOTHING: Mapping[str, str] = {}
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[\]|\.[A-Za-z_][A-Za-z0-9_]*)*")
_SAME = "{0}.epoch = {1}.epoch AND {0}.partition = {1}.partition AND {0}.offset = {1}.offset"


def quarantine_sql(relation: str, texts: Mapping[str, str] = NOTHING) -> str:
    """The records that are not valid by their latest verdict: how they came, verdict, reasons, the version of
    the contract that has judged them, and whether a replay has. `texts` is SQL of columns (`l.key` and
    `l.value`) that are shown otherwise than as the log has them."""
    shown = ("epoch", "partition", "offset", "timestamp", "key", "value", "verdict", "reasons", "contract",
             "replay")  # fmt: skip
    columns = (f"{texts[name]} AS {name}" if name in texts else f"l.{name}" for name in shown)
    return f"SELECT {', '.join(columns)} {_latest(relation)}"


def listed_sql(relation: str, reasons: Collection[str] = (), since: str = "") -> str:
    """The record ids of the records there that a replay judges, the batch of their latest verdict, and how
    many bytes they have; those of Kafka's time `since`, SQL of a moment, where one is given."""
    of = "" if not reasons else f" AND {reason_sql(reasons, 'l.reasons')}"
    of += f" AND l.timestamp > {since}" if since else ""
    verdicts = ", ".join(map(quote.string, JUDGED_AGAIN))
    size = "coalesce(length(l.key), 0) + coalesce(length(l.value), 0) AS bytes"
    shown = _of_l("epoch, partition, offset, batch")
    return f"SELECT {shown}, {size} {_latest(relation)} AND l.verdict IN ({verdicts}){of}"


def replayed_sql(relation: str) -> str:
    """Every copy that a replay has appended, with its verdict and what was decided of the record at first."""
    return f"""SELECT r.epoch, r.partition, r.offset, r.timestamp, r.verdict, r.reasons, r.contract, r.batch,
l.verdict AS first_verdict, l.reasons AS first_reasons, l.contract AS first_contract
FROM {relation} r JOIN {relation} l ON {_SAME.format("r", "l")}
WHERE r.replay AND NOT l.replay AND l.verdict <> '{VALID}'"""


def latest_sql(relation: str) -> str:
    """What follows FROM: the log's records as `l`, those left out that were validated again since."""
    return f"""{relation} l
LEFT ANTI JOIN (SELECT epoch, partition, offset, batch FROM {relation} WHERE replay) r
  ON {_SAME.format("l", "r")} AND l.batch < r.batch"""


def reason_sql(reasons: Iterable[str], column: str = "reasons") -> str:
    """The condition that a record has one of these reasons; a code stands for all of its fields."""
    tests = " OR ".join(_reason_test(reason) for reason in reasons)
    return f"exists({column}, reason -> {tests})"


def refuse_unknown(reasons: Iterable[str], replays: bool = False) -> None:
    """UsageError for what is not a published `code` or `code:field`, or none that a replay judges."""
    for reason in reasons:
        code, parted, field = reason.partition(":")
        if code not in REASONS or (parted and not _FIELD.fullmatch(field)):
            known = ", ".join(REASONS)
            raise UsageError(f"there is no reason {reason!r}", "", f"known: {known}, or one with :field")
        if replays and code == ALREADY_SEEN:
            raise UsageError(
                "duplicates are not validated again", "their event is in the tables already",
                f"leave out {ALREADY_SEEN}",
            )  # fmt: skip


def _reason_test(reason: str) -> str:
    exact = f"reason = {quote.string(reason)}"
    return exact if ":" in reason else f"{exact} OR startswith(reason, {quote.string(reason + ':')})"


def _of_l(columns: str) -> str:
    return ", ".join(f"l.{column}" for column in columns.split(", "))


def _latest(relation: str) -> str:
    return f"FROM {latest_sql(relation)}\nWHERE l.verdict NOT IN ('{VALID}', '{IGNORED}', '{EXPIRED}')"
