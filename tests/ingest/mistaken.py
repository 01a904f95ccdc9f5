"""What ingest writes of raw records, without a broker: its own first pass, decisions and rows, as a file.

So that a mistake can be made in one of its functions, or in the rows, and the witness be asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.ingest.test_verdicts import KAFKA
from twinlake.ingest import first_pass
from twinlake.ingest.decide import decide
from twinlake.ingest.decode_avro import decoded_type
from twinlake.ingest.duplicates import Duplicates, Seen
from twinlake.ingest.log_end import LogEnd
from twinlake.ingest.log_table import log_table
from twinlake.ingest.writer_schema import Writer, learn, meant
from twinlake.kinds.grid import micros
from twinlake.spark.prepared_plan import computed
from twinlake.topics.topic import Topic
from twinlake.witness.ingest.evaluate import sampled
from twinlake.witness.ingest.question import Era, TopicAnswer, TopicQuestion
from twinlake.witness.question import Field, Limits

MARK = b"\1\2\3\4\5\6\7\x08"
NOW = datetime(2026, 2, 1, tzinfo=UTC)
LIMITS = Limits(memory_mb=512, seconds=60)
Sent = tuple[bytes | None, bytes | None, datetime]
"""Key, value, and Kafka's time."""


class Written:
    """A log of one batch of these records, in the order in which they are given."""

    def __init__(
        self, spark: SparkSession, topic: Topic, records: Sequence[Sent],
        schemas: Mapping[int, Mapping[str, Any]] = {},
    ) -> None:  # fmt: skip
        self._topic, self._schemas = topic, schemas
        writers = [learn(topic, number, meant(dict(avro)), partial(decoded_type, spark))
                   for number, avro in schemas.items()]  # fmt: skip
        known = [one for one in writers if isinstance(one, Writer)]
        self.event = {field.name: field.type for field in topic.newest.fields}
        for writer in known:
            self.event = {**writer.stored, **self.event}
        rows = [
            (key, value, topic.name, 0, at, time, 1, None) for at, (key, value, time) in enumerate(records)
        ]
        looked = spark.createDataFrame(rows, KAFKA)
        for expressions in first_pass.selections(topic, known, MARK, self.event, closely=True):
            looked = looked.selectExpr(*expressions)
        found = computed(looked)
        within = topic.contract.unique_within
        index = Duplicates(micros(within) if within else 0, lambda _: nobody())
        decision = decide(found, {}, index, {})
        assert decision is not None
        self._end = LogEnd.of(topic.name, {}).at(NOW).after(decision, "id", known, self.event)
        self.rows = log_table(found, topic, decision, self._end)

    def asked(self, folder: Path) -> TopicAnswer:
        """The witness's answer about the rows as they are now."""
        file = folder / "log.parquet"
        pq.write_table(self.rows, file)
        contract = self._topic.contract.to_json()
        fields = tuple(map(Field.of, self._topic.newest.fields))
        question = TopicQuestion(
            topic=self._topic.name, eras=(Era(after=0, contract=contract, fields=fields),),
            schemas={str(number): avro for number, avro in self._schemas.items()}, files=(str(file),),
            position=1, event=self.event, seed=7, size=1_000,
            met={str(number): tuple(names) for number, names in self._end.schemas.items()},
        )  # fmt: skip
        return sampled(TopicQuestion.from_json(asdict(question)), LIMITS)

    def change(self, at: int, column: str, value: Any) -> None:
        """Another value in a row; `event.NAME` is that field of the event."""
        rows = self.rows.to_pylist()
        name, _, field = column.partition(".")
        rows[at][name] = {**rows[at][name], field: value} if field else value
        self.rows = pa.Table.from_pylist(rows, self.rows.schema)


def nobody() -> Seen:
    empty = np.array([], dtype=np.int64)
    return Seen(high=empty, low=empty, times=empty)
