"""The gate asks a version for what its definition says where a contract is short, or missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.releases.lake import Lake, order
from tests.releases.promised import promised_lake
from twinlake import Aggregate, Latest, Sum
from twinlake.base.errors import DifferenceError

SALES = Aggregate(
    name="sales", inputs=("orders",), keys=("region",), columns={"region": "region", "amount": "amount"},
    measures={"sold": Sum("amount")},
)  # fmt: skip
NEWEST = Latest(
    name="newest", inputs=("orders",), keys=("customer",), order=("order_id",), values=("order_id",),
    columns={"customer": "customer", "order_id": "order_id"},
)  # fmt: skip
TABLES = {"sales": SALES, "newest": NEWEST}
SHORT = "schema: [{properties: [{name: sold, logicalTypeOptions: {minimum: 0}}]}]\n"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """A short contract of sales, none of newest."""
    with promised_lake(spark, tmp_path, {}) as lake:
        (lake.server.settings.project.contracts / "sales.yaml").write_text(SHORT)
        lake.append([order(number) for number in range(30)])
        yield lake


def test_columns_keys_and_rules_are_asked_of_tables_whose_contracts_leave_them_out(lake: Lake) -> None:
    plan = lake.build(TABLES)

    gate = lake.do("gate", plan=plan)

    details = {(check["table"], check["name"], check["detail"]) for check in gate["checks"]}
    assert gate["passed"], gate
    assert ("sales", "columns", "2 columns as promised") in details
    assert ("newest", "columns", "2 columns as promised") in details
    asked = {(table, detail) for table, name, detail in details if name == "expectation"}
    assert asked == {
        ("sales", "expect_column_values_to_be_between column=sold min_value=0.0"),
        ("sales", "expect_column_values_to_be_unique column=region"),
        ("newest", "expect_column_values_to_be_unique column=customer"),
    }
    lake.promote(plan)
    negative = replace(SALES, columns={**SALES.columns, "amount": "CAST(-amount AS decimal(12,2))"})
    breaking = lake.build({**TABLES, "sales": negative})
    with pytest.raises(DifferenceError, match=r"column=sold min_value=0\.0: \d+ of \d+ rows break it"):
        lake.promote(breaking)
    (failed,) = (check for check in lake.do("gate", plan=breaking)["checks"] if not check["passed"])
    assert failed["rows"][0].startswith("such as [-")
