"""Proof: the oracle's verdict on what Twinlake shows and on what the plain loop wrote."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from benchmarks.loop import Sink
from tests.oracle import shown, tables
from tests.oracle.compare import compare, same_sales
from tests.oracle.judge import judge, writer_schemas
from tests.oracle.topic import read
from tests.oracle.watermark import Watermark, watermark
from twinlake.config.settings import Services


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Per table the number of differing keys; everything is equal when all are 0."""

    differing: dict[str, int]

    @property
    def equal(self) -> bool:
        return not any(self.differing.values())


def prove(
    *,
    services: Services,
    topic: str,
    sink: Sink,
    starts: dict[int, int],
    ends: dict[int, int],
    all_ends: dict[int, int],
) -> Proof:
    """Recompute all of the topic for Twinlake, and what lies between `starts` and `ends` for the loop."""
    records, _ = read(services.kafka("ingest").client(), topic, all_ends)
    judged = judge(records, writer_schemas(services.registry_url, f"{topic}-value"))
    valid = tables.frame(records, judged, epoch=0)
    sales = tables.sales_per_region(valid, watermark(valid), without_cancelled=False)
    door = shown.SqlDoor(services.sql_url, *services.reader)
    limits = pl.DataFrame(
        {"partition": list(ends), "first": [starts[number] for number in ends], "end": list(ends.values())},
        schema_overrides={"partition": pl.Int32},
    )
    within = valid.join(limits, on="partition").filter(
        pl.col("offset").is_between("first", "end", closed="left")
    )
    refused = sum(
        starts[records.partitions[row]] <= records.offsets[row] < ends[records.partitions[row]]
        for row in judged.refused
    )
    comparisons = {
        "orders": compare(tables.orders_digests(valid), shown.orders_digests(door)),
        "quarantine": compare(tables.quarantine(records, judged, 0), shown.quarantine(door)),
        "sales_per_region": compare(sales, shown.sales_per_region(door), same_sales),
        "latest_order": compare(tables.latest_order(valid), shown.latest_order(door)),
        "loop sales_per_region": compare(_stored(within), _loop_sales(sink)),
        "loop latest_order": compare(tables.latest_order(within), _loop_latest(sink)),
        "loop archive": compare({"valid": within.height, "refused": refused}, _loop_archive(sink)),
    }
    return Proof(differing={name: found.differing for name, found in comparisons.items()})


def _stored(within: pl.DataFrame) -> dict[tuple[str, int], tuple[object, ...]]:
    """The expected sales without what the loop leaves to its readers: window end, average and final."""
    unknown = Watermark(low=None, high=None)
    found = tables.sales_per_region(within, unknown, without_cancelled=False)
    return {key: (sales, orders, *more) for key, (_, sales, orders, _, *more, _) in found.items()}


def _loop_sales(sink: Sink) -> dict[tuple[str, int], tuple[object, ...]]:
    return {
        (region, window): (_money(sales), orders, _money(smallest), _money(largest), customers)
        for region, window, sales, orders, smallest, largest, customers in sink.sales_per_region().iter_rows()
    }


def _loop_latest(sink: Sink) -> dict[str, tuple[object, ...]]:
    return {
        customer: (order_id, region, status, _money(cents), moment)
        for customer, order_id, region, status, cents, moment, _, _ in sink.latest_order().iter_rows()
    }


def _money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _loop_archive(sink: Sink) -> dict[str, int]:
    verdicts = pl.scan_delta(str(sink.folder / "archive")).select(pl.col("verdict") == "valid").collect()
    valid = int(verdicts["verdict"].sum())
    return {"valid": valid, "refused": verdicts.height - valid}
