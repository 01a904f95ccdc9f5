"""A column that events are to be made of, and that the table has not, is said with the near one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from twinlake.base.errors import UsageError
from twinlake.changelog.event_form import EventOptions, refuse_columns
from twinlake.kinds.events import Events

TABLE = Events(name="t", inputs=("orders",), columns={"customer": "customer", "route": "region"})
ROWS = StructType([StructField(name, StringType()) for name in TABLE.columns])
OPTIONS = EventOptions(topics=("x",), positions="p", format="json")


@pytest.mark.parametrize(
    ("options", "what", "why"),
    [
        (replace(OPTIONS, key=("custmer",)), "'custmer', which its events' key", "did you mean customer?"),
        (replace(OPTIONS, topic_from="rout"), "'rout', which its events' topic", "did you mean route?"),
        (replace(OPTIONS, key=("nope",)), "'nope', which its events' key", "known: customer, route"),
    ],
)
def test_a_column_that_is_not_there_is_said_with_those_that_are(
    options: EventOptions, what: str, why: str
) -> None:
    with pytest.raises(UsageError) as refused:
        refuse_columns(options, TABLE, ROWS)

    assert what in refused.value.what and refused.value.why == f"it is none of its view; {why}"
