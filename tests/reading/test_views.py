"""Views as text: what is made, altered and dropped on the way from what there is to what is wanted."""

from __future__ import annotations

from twinlake.kinds.clock import PROCESSING_TIME
from twinlake.lake.catalog.release_log import Release
from twinlake.reading.views import View, fixed_views, served_views, statements
from twinlake.reading.watermarks import watermark_sql, watermark_view

CLOCKS = {"log_append_time": None, "processing_time": 1_000_000}


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

    of_logs = {"orders_quarantine": "SELECT 2", "T": "SELECT 3"}
    fixed, served = fixed_views(made, texts, of_logs), served_views(made, texts, of_logs)

    assert [view.place for view in fixed] == ["`release_3`.`t`", "`release_3`.`orders_quarantine`"]
    assert [view.place for view in served] == ["`serve`.`t`", "`serve`.`orders_quarantine`"]


def test_what_came_late_is_beside_its_table_in_every_schema() -> None:
    live = {"t": "v-1", "u": "v-2", "U_late": "v-3"}
    made = Release(number=3, kind="promote", tables=live, created_at="now", approved_by="x")
    texts = {(table, version): f"SELECT '{table}'" for table, version in live.items()}
    lates = {("t", "v-1"): "SELECT 1", ("u", "v-2"): "SELECT 2"}

    fixed, served = fixed_views(made, texts, {}, lates), served_views(made, texts, {}, lates)

    assert [(view.name, view.sql) for view in served] == [
        # a release of before the name was refused keeps its own table
        ("U_late", "SELECT 'U_late'"), ("t", "SELECT 't'"), ("u", "SELECT 'u'"), ("t_late", "SELECT 1"),
    ]  # fmt: skip
    assert [(view.schema, view.name) for view in fixed] == [("release_3", view.name) for view in served]


def test_the_watermark_of_a_version_and_a_topic_has_a_name_that_the_catalog_takes() -> None:
    view = watermark_view("t", "abc-1", "orders", {"watermark": 1_700_000_000_000_000, **CLOCKS})

    assert view.place == "`meta`.`t_abc_1_orders`"
    assert view.sql == (
        "SELECT TIMESTAMP '2023-11-14T22:13:20Z' AS watermark, CAST(NULL AS TIMESTAMP) AS log_append_time, "
        "TIMESTAMP '1970-01-01T00:00:01Z' AS processing_time"
    )
    assert watermark_sql("t", "abc-1", "orders") == "(SELECT watermark FROM `meta`.`t_abc_1_orders`)"
    assert watermark_sql("t", "abc-1", "orders", PROCESSING_TIME) == (
        "(SELECT processing_time FROM `meta`.`t_abc_1_orders`)"
    )


def test_each_topic_of_a_version_has_a_watermark_of_its_own() -> None:
    one, other = (watermark_view("t", "abc-1", topic, {"watermark": 0}) for topic in ("orders", "returns"))

    assert one.place != other.place
    assert watermark_view("t", "abc-1", "shop.a-b", {}).place == "`meta`.`t_abc_1_shop_a_b`"


def test_a_topic_that_has_no_watermark_yet_has_a_null_of_the_right_type() -> None:
    view = watermark_view("t", "abc-1", "orders", {})

    assert view.sql.startswith("SELECT CAST(NULL AS TIMESTAMP) AS watermark, ")
