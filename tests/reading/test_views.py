"""Views as text: what is made, altered and dropped on the way from what there is to what is wanted."""

from __future__ import annotations

from jobs.lake.release_log import Release
from jobs.reading.views import View, fixed_views, served_views, statements, watermark_sql, watermark_view


def test_a_view_that_is_there_is_altered_and_never_dropped_first() -> None:
    wanted = [View(schema="serve", name="a", sql="SELECT 2"), View(schema="serve", name="b", sql="SELECT 1")]
    present = {("serve", "a"): "SELECT 1", ("serve", "c"): "SELECT 1", ("release_1", "a"): "SELECT 1"}

    assert statements(wanted, present, ["serve"]) == [
        "ALTER VIEW `serve`.`a` AS SELECT 2",
        "CREATE VIEW `serve`.`b` AS SELECT 1",
        "DROP VIEW IF EXISTS `serve`.`c`",
    ]


def test_nothing_is_done_when_nothing_changed() -> None:
    wanted = [View(schema="serve", name="a", sql="SELECT 1")]

    assert statements(wanted, {("serve", "a"): "SELECT 1"}, ["serve"]) == []


def test_a_release_is_served_twice_once_for_good() -> None:
    made = Release(number=3, kind="promote", tables={"t": "v-1"}, created_at="now", approved_by="x")
    texts = {("t", "v-1"): "SELECT 1"}

    assert [view.place for view in fixed_views(made, texts)] == ["`release_3`.`t`"]
    assert [view.place for view in served_views(made, texts, {"orders": "SELECT 2"})] == [
        "`serve`.`t`", "`serve`.`orders_quarantine`"
    ]  # fmt: skip


def test_the_watermark_of_a_version_has_a_name_that_the_catalog_takes() -> None:
    view = watermark_view("t", "abc-1", 1_700_000_000_000_000)

    assert view.place == "`meta`.`t_abc_1`"
    assert view.sql == "SELECT TIMESTAMP '2023-11-14T22:13:20Z' AS watermark"
    assert watermark_sql("t", "abc-1") == "(SELECT watermark FROM `meta`.`t_abc_1`)"
    assert "CAST(NULL AS TIMESTAMP)" in watermark_view("t", "abc-1", None).sql
