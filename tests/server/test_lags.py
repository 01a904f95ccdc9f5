"""The lags of the topics, as the open lake server hears of them from the broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.releases.lake import Lake
from twinlake.base.waiting import wait_for
from twinlake.server import lake_server


def test_a_lag_is_known_at_once_after_a_start(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_server, "LAG_EVERY_S", 3600)
    lake = Lake(spark, tmp_path / "home")

    def known() -> bool | None:
        return True if lake.server.status()["topics"][0]["lag_records"] == 0 else None

    try:
        assert wait_for("the lag", known, 30, every_s=0.05)
    finally:
        lake.stop()
