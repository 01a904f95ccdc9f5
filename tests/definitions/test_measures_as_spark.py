"""Each measure over a column of each type: what is whole without Spark is whole to Spark, with its types."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.longer import some
from tests.project import OURS
from twinlake.definitions.without_spark import Typist
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.analysis import columns, problems
from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.measures.measure import sample
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = {"orders": load_topic("orders", OURS)}
COLUMNS = {
    "text": "region", "flag": "amount > 1", "small": "CAST(order_id AS smallint)",
    "number": "CAST(order_id AS int)",
    "long": "order_id", "float_": "CAST(amount AS float)", "double_": "CAST(amount AS double)",
    "money": "amount", "wide": "CAST(amount AS decimal(38,6))", "day": "CAST(ordered_at AS date)",
    "at": "ordered_at",
    "list": "array(region)", "row": "named_struct('a', region, 'b', amount)",
}  # fmt: skip


@pytest.mark.parametrize("kind", some(MEASURES, 3))
def test_a_measure_that_is_whole_is_whole_to_spark(spark: SparkSession, kind: str) -> None:
    wrong: dict[str, Any] = {}
    for name in COLUMNS:
        one: Any = sample(MEASURES[kind])
        given = {"of": name, "by": "at"} if kind != "top_k" else {"of": name, "by": None}
        one = replace(one, **{field.name: given[field.name] for field in fields(one) if field.name in given})
        table = Aggregate(
            name="t", inputs=("orders",), columns=COLUMNS, keys=("text",), measures={"m": one}
        )  # fmt: skip
        with closing(Typist(topics=dict(TOPICS))) as typist:
            found = typist.typed(table)
        theirs = [problem.why_text for problem in problems(table, TOPICS, spark)]
        if found.columns is not None and (theirs or list(found.columns) != columns(table, TOPICS, spark)):
            wrong[name] = (found.columns, theirs or columns(table, TOPICS, spark))
        if found.wrong and not theirs:
            wrong[name] = ([error.why_text for error in found.wrong], "it is right")

    assert wrong == {}
