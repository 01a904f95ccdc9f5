"""Which reasons may be named, and what a reason stands for."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from twinlake.base.errors import UsageError
from twinlake.lake.log.quarantine import reason_sql, refuse_unknown


@pytest.mark.parametrize(
    "reason",
    ["lost", "", "empty:", "empty:a b", "empty:region'", "empty:a:b", "Empty", "missing:a.", "missing:.a"],
)
def test_what_is_no_published_reason_is_refused_by_name(reason: str) -> None:
    with pytest.raises(UsageError, match="there is no reason") as refused:
        refuse_unknown(["too_late", reason])

    assert repr(reason) in refused.value.what and "not_allowed" in refused.value.remedy


def test_a_duplicate_can_be_looked_at_and_not_be_judged_again() -> None:
    refuse_unknown(["already_seen", "empty:region", "null_value", "wrong_type:items[].price"])

    with pytest.raises(UsageError, match="not validated again"):
        refuse_unknown(["already_seen"], replays=True)


def test_a_code_stands_for_all_of_its_fields_and_a_field_for_itself(spark: SparkSession) -> None:
    rows = spark.sql(
        """SELECT * FROM VALUES (1, array('empty:region', 'too_long:region')), (2, array('empty:customer')),
        (3, array('too_late')), (4, array('empty_handed')), (5, CAST(array() AS array<string>))
        AS t(n, reasons)"""
    )

    def having(*reasons: str) -> set[int]:
        return {row.n for row in rows.where(reason_sql(reasons)).collect()}

    assert having("empty") == {1, 2}
    assert having("empty:region") == {1}
    assert having("too_late", "empty:customer") == {2, 3}
