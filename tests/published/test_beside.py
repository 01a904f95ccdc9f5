"""What else of Twinlake knows of published tables: backups, the disk, damage, the audit log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import OURS
from twinlake.backup.snapshot import snapshot
from twinlake.config.settings import Settings
from twinlake.lake.catalog.audit_log import ACTS
from twinlake.lake.disk import Owner, owner
from twinlake.lake.storage.damage import damaged, table_of
from twinlake.published.position import Position

POSITION = Position(
    lake="id", table="t", release=3, version="v-1", position={"orders": 7, "payments": 2},
    pin={"version": "v-1", "position": {"orders": 7}, "reads": {}}, starts={"orders": 0}, way="all rows",
    changed=5, published_at="2026-01-31T12:00:00Z",
)  # fmt: skip


def test_a_backup_has_which_tables_are_published_and_not_their_rows(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, in_project=OURS)
    lake = tmp_path / "lake"
    (lake / "published" / "t").mkdir(parents=True)
    (lake / "published" / "t" / "part-0.parquet").write_text("rows")
    (lake / "publications").mkdir()
    (lake / "publications" / "t.json").write_text("{}")
    (lake / "lake.json").write_text("{}")

    found = snapshot(settings)

    assert found.small == {"lake/lake.json": b"{}", "lake/publications/t.json": b"{}"}
    assert found.data == {}


def test_the_disk_is_counted_by_table() -> None:
    assert owner("published/t/part-0.parquet", False) == Owner("published", "t")
    assert owner("published", True) == owner("tables", True)


@pytest.mark.parametrize("file", ["part-0.parquet", "_delta_log/00000000000000000000.json"])
def test_a_damaged_file_is_of_the_published_table_and_its_folder_may_be_deleted(file: str) -> None:
    found = damaged(Path("/lake/published/t") / file, "it is not there")

    assert (
        "what is published of table t" in found.what and "delete the folder /lake/published/t" in found.remedy
    )
    assert table_of(Path("/lake/published/t") / file) == Path("/lake/published/t")


def test_who_has_published_a_table_is_in_the_audit_log() -> None:
    assert "publish" in ACTS


def test_a_position_is_what_its_commit_says_and_nothing_else_is_one() -> None:
    said = POSITION.to_json()

    assert Position.from_json(said) == POSITION
    assert Position.from_json({"kind": "published"}) is None
    assert POSITION.marks() == {"twinlake.release": 3, "twinlake:orders": 7, "twinlake:payments": 2}
    assert POSITION.is_at(3, {"payments": 2, "orders": 7}) and not POSITION.is_at(4, POSITION.position)
