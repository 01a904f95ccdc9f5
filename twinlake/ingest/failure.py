"""Failure: what an ingest says of an error that has ended its stream."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from twinlake.base.errors import TwinlakeError, first_lines
from twinlake.config.settings import Settings
from twinlake.ingest import source
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.storage import store
from twinlake.spark.session import scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def explained(
    error: BaseException, spark: SparkSession, settings: Settings, topic: str, batch: int
) -> TwinlakeError:
    """The error in words for an operator; `batch` is the last one that the log has."""
    if known := store.no_room(settings.lake, error, scratch_folder(spark)) or damage_in(error, settings.lake):
        return known
    if isinstance(error, TwinlakeError):
        return error
    with suppress(TwinlakeError):  # without an address of Kafka it was something else
        if refused := source.refusal(error, settings.services().kafka("ingest"), topic):
            return refused
    return TwinlakeError(
        what=f"ingest of topic {topic} failed after batch {batch}",
        why=f"{type(error).__name__}: {first_lines(error)}",
        remedy="it is tried again from the log's end; if it goes on, see `twinlake logs lake`",
    )
