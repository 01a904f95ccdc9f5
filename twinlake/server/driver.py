"""The lake server's Spark driver: begun in a thread of its own, before most of the server is imported.

Its JVM takes seconds to start on a core of its own; on the other one Python reads the server's modules.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from twinlake.base.files import replace_file
from twinlake.config.settings import Settings
from twinlake.spark import unused_memory
from twinlake.spark.cluster import check_master
from twinlake.spark.jvm import end_together
from twinlake.spark.session import drop_scratch, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION = "twinlake-lake"
# The stream's small tasks go first when a rebuild or a build fills the cores.
POOLS = """<?xml version="1.0"?>
<allocations>
  <pool name="default"><schedulingMode>FIFO</schedulingMode><weight>4</weight><minShare>1</minShare></pool>
  <pool name="speed"><schedulingMode>FAIR</schedulingMode><weight>4</weight><minShare>1</minShare></pool>
  <pool name="batch"><schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
</allocations>
"""


class Driver:
    """It starts when it is made."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: Future[SparkSession] = Future()
        threading.Thread(target=self._make, name="driver", daemon=True).start()

    def session(self) -> SparkSession:
        """Waits for it; raises why it could not start."""
        return self._made.result()

    @property
    def known(self) -> SparkSession | None:
        """It, once it has started."""
        is_there = self._made.done() and not self._made.exception()
        return self._made.result() if is_there else None

    def stop(self) -> None:
        if spark := self.known:
            spark.stop()

    def _make(self) -> None:
        try:
            self._made.set_result(_lake_session(self._settings))
        except BaseException as error:
            self._made.set_exception(error)


def _lake_session(settings: Settings) -> SparkSession:
    """It ends with its JVM; the stream's small tasks go before a job's."""
    check_master(settings.values)
    pools = settings.run_dir / "pools.xml"
    replace_file(pools, POOLS)
    drop_scratch(settings, SESSION)
    turns, given = {"spark.scheduler.allocation.file": pools.as_uri()}, settings.values.spark
    spark = session(settings, SESSION, more=turns, given=given)
    end_together(spark.sparkContext._gateway.proc)
    unused_memory.begin(spark)
    return spark
