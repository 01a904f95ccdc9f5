"""The whole check: read the topic, judge, evaluate, ask the SQL server, compare."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.oracle import shown, tables
from tests.oracle.compare import Comparison, compare, same_sales
from tests.oracle.judge import Registry, judge, writer_schemas
from tests.oracle.mended import Mended, judge_mended
from tests.oracle.topic import Client, read
from tests.oracle.watermark import watermark

QUESTIONS: dict[str, Callable[[shown.Door], Any]] = {
    "orders": shown.orders_digests,
    "sales_per_region": shown.sales_per_region,
    "latest_order": shown.latest_order,
    "quarantine": shown.quarantine,
}
TABLES = tuple(QUESTIONS)


def check(
    *,
    kafka: Client,
    registry_url: Registry | str,
    door: shown.Door,
    topic: str = "orders",
    epoch: int = 0,
    ends: dict[int, int] | None = None,
    without_cancelled: bool = False,
    mended: Mended | None = None,
    only: tuple[str, ...] = TABLES,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Compare the tables in `only`; they must have caught up with `ends` a second before this is called,
    because the watermark that readers are shown follows the tables within one.
    """
    started = time.monotonic()
    asking = ThreadPoolExecutor(1)  # the door works while the records are read and judged here
    answers = {name: asking.submit(QUESTIONS[name], door) for name in only}
    records, ends = read(kafka, topic, ends)
    say(f"read {len(records):,} records of {topic} in {time.monotonic() - started:.1f} s")
    schemas = writer_schemas(registry_url, f"{topic}-value")
    judged = judge_mended(records, schemas, mended) if mended else judge(records, schemas)
    say(f"judged them: {judged.verdicts()}, {time.monotonic() - started:.1f} s")
    valid = tables.frame(records, judged, epoch)
    makers: dict[str, Callable[[], Comparison]] = {
        "orders": lambda: compare(tables.orders_digests(valid), answers["orders"].result()),
        "sales_per_region": lambda: compare(
            tables.sales_per_region(valid, watermark(valid), without_cancelled=without_cancelled),
            answers["sales_per_region"].result(),
            same_sales,
        ),
        "latest_order": lambda: compare(tables.latest_order(valid), answers["latest_order"].result()),
        "quarantine": lambda: compare(
            tables.quarantine(records, judged, epoch), answers["quarantine"].result()
        ),
    }
    compared: dict[str, Comparison] = {}

    def rows(name: str) -> int:
        """The keys of `orders` are blocks of rows."""
        return len(judged.rows) if name == "orders" else compared[name].expected

    for name in only:
        compared[name] = makers[name]()
        outcome = "equal" if compared[name].equal else f"{compared[name].differing:,} keys DIFFER"
        say(f"{name}: {rows(name):,} rows, {outcome}, {time.monotonic() - started:.1f} s")
    return {
        "equal": all(one.equal for one in compared.values()),
        "records": len(records),
        "ends": {str(partition): end for partition, end in sorted(ends.items())},
        "verdicts": judged.verdicts(),
        "late": judged.late,
        "valid_orders": len(judged.rows),
        "tables": {name: {"rows": rows(name), **one.to_json()} for name, one in compared.items()},
        "seconds": round(time.monotonic() - started, 1),
    }
