"""The second pass over a micro-batch: from Kafka's records and the decision to the columns of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.ingest import decode_avro, protobuf_body
from twinlake.ingest.decide import FIXED, VALID_LATE, Code, Decision
from twinlake.ingest.decoding import event_columns, schema_id
from twinlake.ingest.log_end import LogEnd
from twinlake.ingest.writer_schema import Writer
from twinlake.lake.log.log import COLUMNS, EVENT
from twinlake.topics.topic import Topic
from twinlake.topics.verdict import DUPLICATE, IGNORED, INVALID, TOO_LATE, VALID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def log_rows(
    records: DataFrame,
    topic: Topic,
    writers: Sequence[Writer],
    event_fields: Mapping[str, str],
    decision: Decision,
    end: LogEnd,
) -> DataFrame:
    """The log's columns for Kafka's records, with what was decided looked up by partition and offset.

    `event_fields` are those of the log's `event`, `end` is the log's end after this batch; the columns are
    those of `lake.log.COLUMNS`.
    """
    from pyspark.sql import functions as F

    protobuf_body.register_all(records, writers)
    if decision.skips:
        spans = " ".join(f"WHEN {p} THEN offset >= {span.start}" for p, span in decision.spans.items())
        records = records.where(f"CASE partition {spans} ELSE false END")
    # Numbers that change from batch to batch stay out of the generated code, which is compiled again (and
    # starts cold) for every new text of it: an array is passed to it by reference.
    starts = [decision.spans[p].start if p in decision.spans else 0 for p in range(max(decision.spans) + 1)]
    start = f"get(array({', '.join(f'{n}L' for n in starts)}), partition)"
    at = F.expr(f"CAST((offset - {start}) * {decision.width} + 1 AS int)")
    code = F.lit(None).cast("binary")
    for partition, span in sorted(decision.spans.items()):
        mine = F.substring(F.lit(span.codes), at, F.lit(decision.width))
        code = F.when(F.col("partition") == partition, mine).otherwise(code)
    columns, event = event_columns(topic, writers, event_fields)
    coded = records.withColumn("code", code).selectExpr(
        "*", f"{schema_id(topic)} AS schema_id", f"{_decodable(decision)} AS decodable"
    )
    made = {
        "epoch": str(end.epoch),
        "timestamp_type": "timestampType",
        EVENT: event,
        "verdict": _verdict(decision),
        "reasons": _reasons(decision),
        "late": f"code = {_code(decision, FIXED.index(VALID_LATE) + 1)}",
        "contract": quote.string(topic.contract.version),
        "replay": "false",
        "batch": f"get(array({end.batch}L), if(partition < 0, 1, 0))",
        "ingested_at": f"timestamp_micros(get(array({end.ingested_at}L), if(partition < 0, 1, 0)))",
    }
    shown = (f"{made[name]} AS {name}" if name in made else name for name in COLUMNS)
    return coded.selectExpr("*", *columns).selectExpr(*shown)


def _code(decision: Decision, number: int) -> str:
    return f"X'{number:0{2 * decision.width}x}'"


def _numbered(decision: Decision, which: Callable[[Code], bool]) -> list[str]:
    return [_code(decision, number) for number, code in enumerate(decision.codes, start=1) if which(code)]


def _decodable(decision: Decision) -> str:
    broken = _numbered(decision, lambda code: not code.decodable)
    return f"code NOT IN ({', '.join(broken)})" if broken else "true"


def _verdict(decision: Decision) -> str:
    cases = []
    for verdict in (VALID, DUPLICATE, TOO_LATE, IGNORED):
        numbers = _numbered(decision, lambda code, verdict=verdict: code.verdict == verdict)  # type: ignore[misc]
        if numbers:
            cases.append(f"WHEN code IN ({', '.join(numbers)}) THEN '{verdict}'")
    return f"CASE {' '.join(cases)} ELSE '{INVALID}' END"


def _reasons(decision: Decision) -> str:
    texts = ", ".join(quote.string(decode_avro.SEPARATOR.join(code.reasons)) for code in decision.codes)
    valid = ", ".join(_numbered(decision, lambda code: code.verdict == VALID))
    number = "CAST(conv(hex(code), 16, 10) AS int)"
    looked_up = f"split(element_at(array({texts}), {number}), '{decode_avro.SEPARATOR}')"
    return f"CASE WHEN code IN ({valid}) THEN CAST(array() AS array<string>) ELSE {looked_up} END"
