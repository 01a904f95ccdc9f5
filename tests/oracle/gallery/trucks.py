"""What the gallery's tables of trucks must show."""

from __future__ import annotations

from datetime import datetime

from tests.oracle.gallery.records import Record, Rows


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    newest: dict[str, Record] = {}
    for report in sorted(
        valid["truck_reports"], key=lambda one: (one["reported_at"], one["partition"], one["offset"])
    ):
        newest[report["truck"]] = report
    on_the_road = {truck: report for truck, report in newest.items() if not report["retired"]}
    regions = {
        region: [report for report in on_the_road.values() if report["region"] == region]
        for region in {report["region"] for report in on_the_road.values()}
    }
    return {
        "truck_now": {
            (truck,): {name: report[name] for name in ("region", "load_kg", "reported_at")}
            for truck, report in on_the_road.items()
        },
        "region_merchandise": {
            (region,): {"trucks": len(held), "load_kg": sum(report["load_kg"] for report in held)}
            for region, held in regions.items()
        },
    }
