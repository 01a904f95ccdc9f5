"""What contracts say in words is where a tool looks for it: DESCRIBE, and the columns that JDBC lists."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.project import OURS, PROJECT, project_in
from tests.reading.conftest import Released, SqlServer
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog import described
from twinlake.reading.comments import comments
from twinlake.reading.views import View
from twinlake.topics.contract_words import Words


def told(sql: SqlServer, table: str) -> dict[str, str | None]:
    return {row["col_name"]: row["comment"] for row in sql.rows(f"DESCRIBE {table}")}


def of_table(sql: SqlServer, table: str) -> str | None:
    rows = sql.rows(f"DESCRIBE TABLE EXTENDED {table}")
    return next((row["data_type"] for row in rows if row["col_name"] == "Comment"), None)


def until(sql: SqlServer, table: str, column: str, comment: str) -> dict[str, str | None]:
    def seen() -> dict[str, str | None] | None:
        found = told(sql, table)
        return found if comment in str(found[column]) else None

    return wait_for("the catalog to say it", seen, 60)


def test_describe_and_jdbc_say_what_contracts_say_and_follow_them(
    sql: SqlServer, released: Released, jdbc: Callable[..., Any], tmp_path: Path
) -> None:
    described.publish(released.lake, [OURS])
    for schema in ("serve", "release_1"):
        found = until(sql, f"{schema}.sales_per_region", "window_start", "Start of the minute")
        assert found["region"] == "Where the order was placed." and "in time" in str(found["final"])
        assert "One row per region and minute." in str(of_table(sql, f"{schema}.sales_per_region"))
    assert "Every valid record of topic orders" in str(of_table(sql, "serve.orders_valid"))
    assert told(sql, "serve.orders_quarantine")["reasons"] == "why it is not valid"
    assert "came late" in str(of_table(sql, "serve.sales_per_region_late"))

    connection = jdbc()
    try:
        listed = connection.getMetaData().getTables(None, "serve", "sales_per_region", None)
        assert listed.next() and "One row per region and minute." in listed.getString("REMARKS")
        columns, remarks = connection.getMetaData().getColumns(None, "serve", "sales_per_region", "%"), {}
        while columns.next():
            remarks[columns.getString("COLUMN_NAME")] = columns.getString("REMARKS")
        assert remarks == {
            name: comment or "" for name, comment in told(sql, "serve.sales_per_region").items()
        }
    finally:
        connection.close()

    shutil.copytree(PROJECT / "contracts", tmp_path / "contracts")
    file = tmp_path / "contracts" / "sales_per_region.yaml"
    file.write_text(
        file.read_text().replace("One row per region and minute.", "'It''s one row; of \"r\" and a minute.'")
    )
    described.publish(released.lake, [project_in(tmp_path)])
    table = "serve.sales_per_region"
    wait_for("the new words", lambda: "It's one row" in str(of_table(sql, table)) or None, 60)
    made = released.promote(released.paid_orders)  # an altered view keeps them
    sql.wait_until(lambda status: status["release"] == made.number)
    until(sql, "serve.sales_per_region", "window_start", "Start of the minute")
    released.promote(released.all_orders)


def test_a_torn_file_and_a_contract_without_words_say_nothing(tmp_path: Path) -> None:
    assert described.described(tmp_path) == {} and described.published(tmp_path) is None
    (tmp_path / "described.json").write_text('{"sales": {"purp')
    assert described.described(tmp_path) == {}
    views = [View(schema="serve", name="Sales", sql=""), View(schema="serve", name="sales_other", sql="")]

    found = comments(views, ["Sales"], [], {"sales": Words(purpose="Of another name.")})

    assert list(found) == [("serve", "sales")] and found["serve", "sales"]["comment"] == ""
