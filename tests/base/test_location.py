"""Places of a lake by their URIs."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlake.base.errors import UsageError
from twinlake.base.location import Remote, located
from twinlake.config.sections import Lake
from twinlake.config.settings import Settings
from twinlake.config.values import Values

LAKE = "hdfs://namenode:8020/data/lake"


@pytest.mark.parametrize("text", ["file:///srv/lake", "/srv/lake"])
def test_a_folder_of_this_machine_is_a_path(text: str) -> None:
    assert located(text) == Path("/srv/lake")


def test_a_place_in_a_store_is_joined_and_named_like_a_path() -> None:
    lake = located(f"{LAKE}/")

    file = lake / "logs" / "sales"
    assert isinstance(file, Remote)
    assert (str(file), file.name, file.parent.parent) == (f"{LAKE}/logs/sales", "sales", lake)
    assert (file.store, file.path) == ("hdfs://namenode:8020", "/data/lake/logs/sales")
    assert file.with_name(".x") == lake / "logs" / ".x"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lake", "not an absolute path"),
        ("file://host/lake", "not an absolute path"),
        ("hdfs://namenode:8020/", "no folder below the root"),
        ("hdfs:///lake", "names no host"),
        ("s3a://bucket/lake", "no store for s3a://"),
        ("hdfs://namenode:8020/la%6be", "mean something else"),
        ("file:///srv/lake#2", "'#' mean something else"),
        ("file:///srv/lake\0", "mean something else"),
        ("file:///srv/l\u00e4ke", "mean something else"),
        ("file:///srv/a/../lake", ". and .. are other places"),
        ("hdfs://ann:hunter2@namenode:8020/lake", "it names a user"),
    ],
)
def test_what_no_lake_can_be_in_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UsageError) as told:
        located(text)

    assert why in told.value.why and "hdfs://namenode:8020/lake" in told.value.remedy


def test_the_lake_is_where_the_settings_say_and_streams_keep_their_checkpoints_here(
    tmp_path: Path,
) -> None:
    here = Settings(home=tmp_path)
    elsewhere = Settings(home=tmp_path, known_values=Values(lake=Lake(uri=LAKE)))

    assert (here.lake, here.checkpoints) == (tmp_path / "lake", tmp_path / "lake" / "checkpoints")
    assert (elsewhere.lake, elsewhere.checkpoints) == (Remote(LAKE), tmp_path / "checkpoints")
