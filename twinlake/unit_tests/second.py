"""Opens Spark for unit tests: once in a process, and not before a case needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from twinlake.base.errors import UsageError
from twinlake.config.settings import Settings
from twinlake.unit_tests.running import Second

_FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
"""To compile code for a handful of rows takes seconds, to interpret the plan milliseconds."""
_OPENED: dict[str, tuple[Second, TemporaryDirectory[str]]] = {}
"""The one of this process, and its folder, which is deleted when the process ends."""


def is_open() -> bool:
    """Whether a case has asked for it already."""
    return bool(_OPENED)


def spark_of(settings: Settings, environ: Mapping[str, str], say: Callable[[str], None]) -> Second:
    """A session with a folder of its own, which touches nothing of what runs; `say` hears of jars that have
    to be fetched. UsageError where no Spark is installed."""
    if not _OPENED:
        folder = TemporaryDirectory(prefix="twinlake-test-spark-")
        _OPENED["spark"] = (_opened(settings, environ, say, Path(folder.name)), folder)
    return _OPENED["spark"][0]


def _opened(settings: Settings, environ: Mapping[str, str], say: Callable[[str], None], home: Path) -> Second:
    from twinlake.setup.ensure import ensure_jars

    ensure_jars(settings, environ, say)
    try:
        from twinlake.spark.session import session, stderr_to
        from twinlake.unit_tests.by_spark import BySpark

        with stderr_to(home / "spark.log"):
            spark = session(
                replace(settings, home=home), name="twinlake-test", memory="1g", cores=1, more=_FOR_FEW_ROWS,
                plans_only=True,
            )  # fmt: skip
            return BySpark(spark)
    except ImportError as error:
        why = f"{error.name} is not installed, and the witness does not evaluate everything"
        raise UsageError("Spark has to run a unit test", why, 'pip install "twinlake[server]"') from error
