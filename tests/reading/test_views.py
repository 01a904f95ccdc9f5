"""Views as text: what is made, altered and dropped on the way from what there is to what is wanted."""

from __future__ import annotations

from jobs.lake.release_log import Release
from jobs.reading.views import View, fixed_views, served_views, statements, watermark_sql, watermark_view


def test_a_view_that_is_there_is_altered_and_never_dropped_first() -> None:
    wanted = [View(schema="serve", name="a", sql="SELECT 2"), View(schema="serve", name="b", sql="SELECT 1")]
    present = {("serve", "a"): "SELECT 1", ("serve", "c"): "SELECT 1", ("release_1", "a"): "SELECT 1"}

    assert [statement for _, statement in statements(wanted, present, ["serve"])] == [
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
    assert [view.place for view in served_views(made, texts, {"orders_quarantine": "SELECT 2"})] == [
        "`serve`.`t`", "`serve`.`orders_quarantine`"
    ]  # fmt: skip


def test_the_watermark_of_a_version_and_a_topic_has_a_name_that_the_catalog_takes() -> None:
    view = watermark_view("t", "abc-1", "orders", 1_700_000_000_000_000)

    assert view.place == "`meta`.`t_abc_1_orders`"
    assert view.sql == "SELECT TIMESTAMP '2023-11-14T22:13:20Z' AS watermark"
    assert watermark_sql("t", "abc-1", "orders") == "(SELECT watermark FROM `meta`.`t_abc_1_orders`)"


def test_each_topic_of_a_version_has_a_watermark_of_its_own() -> None:
    one, other = (watermark_view("t", "abc-1", topic, 0) for topic in ("orders", "returns"))

    assert one.place != other.place


def test_a_topic_that_has_no_watermark_yet_has_a_null_of_the_right_type() -> None:
    view = watermark_view("t", "abc-1", "orders", None)

    assert view.sql == "SELECT CAST(NULL AS TIMESTAMP) AS watermark"
