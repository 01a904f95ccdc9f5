"""What every store must do, asked of a folder of it that is empty. The one list for all stores."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake.base.location import Location
from twinlake.lake.delta import data_file
from twinlake.lake.storage import store

WRITERS = 8


def one_of_many_writers_has_a_name(folder: Location) -> None:
    store.make_folder(folder)
    for number in range(20):
        file = folder / f"{number:020d}.json"

        def publish(writer: int, file: Location = file) -> bool:
            return store.put_if_absent(file, f"writer {writer}")

        with ThreadPoolExecutor(WRITERS) as pool:
            won = [*pool.map(publish, range(WRITERS))]

        assert won.count(True) == 1 and store.read_text(file) == f"writer {won.index(True)}"
    assert sorted(store.names(folder)) == [f"{number:020d}.json" for number in range(20)], (
        "nothing lies about"
    )


def what_is_there_is_listed_and_told(folder: Location) -> None:
    assert store.names(folder) == [] and store.tree(folder) == {} and not store.exists(folder)
    before_s = time.time()

    store.replace(folder / "a" / "b" / "größe.json", "ü")
    store.make_folder(folder / "empty")
    store.replace(folder / "a" / "c", "")

    assert sorted(store.names(folder)) == ["a", "empty"]
    told = store.tree(folder)
    assert {name: one.bytes for name, one in told.items()} == {"a/b/größe.json": 2, "a/c": 0}
    assert store.stat(folder / "a" / "c") == told["a/c"]
    assert before_s - 2 < told["a/c"].modified_s < time.time() + 2
    assert store.exists(folder) and store.exists(folder / "a" / "c") and not store.exists(folder / "d")


def a_file_is_replaced_as_a_whole(folder: Location) -> None:
    file = folder / "one.json"
    store.replace(file, "a long first content")

    store.replace(file, "short")

    assert store.read_text(file) == "short" and store.names(folder) == ["one.json"]


def what_is_not_there_is_not_found(folder: Location) -> None:
    store.make_folder(folder)

    for ask in (store.read, store.stat):
        with pytest.raises(FileNotFoundError):
            ask(folder / "none")  # type: ignore[operator]
    store.delete(folder / "none")
    store.delete_tree(folder / "none")


def what_is_deleted_is_gone(folder: Location) -> None:
    for name in ("one", "tree/two", "tree/deep/three"):
        *folders, last = name.split("/")
        place = folder
        for part in (*folders, last):
            place = place / part
        store.replace(place, name)

    store.delete(folder / "one")
    store.delete_tree(folder / "tree" / "deep")
    assert sorted(store.tree(folder)) == ["tree/two"]
    store.delete_tree(folder / "tree")

    assert store.tree(folder) == {}


def a_file_has_another_name(folder: Location) -> None:
    store.replace(folder / "torn.parquet", "x")

    store.rename(folder / "torn.parquet", ".torn.tmp")

    assert store.names(folder) == [".torn.tmp"] and store.read_text(folder / ".torn.tmp") == "x"


def a_data_file_is_written_read_and_taken_over(folder: Location) -> None:
    rows = pa.table({"a": [*range(10_000)]})
    table, staged = folder / "table", folder / "staged.parquet"
    store.make_folder(table)
    with store.writer(staged) as out:
        pq.write_table(rows, out)

    written = data_file.write(rows, table, {"_segment": "1"}, [("a",)])
    adopted = data_file.adopt(staged, table, {"_segment": "2"}, [("a",)])

    assert store.exists(staged), "it stays where it was"
    assert written["stats"] == adopted["stats"] and '"numRecords":10000' in written["stats"]
    for added in (written, adopted):
        file = table / added["path"]
        assert pq.ParquetFile(store.reader(file)).read().equals(rows)
        assert store.stat(file).bytes == added["size"]


RULES: tuple[Callable[[Location], None], ...] = (
    one_of_many_writers_has_a_name,
    what_is_there_is_listed_and_told,
    a_file_is_replaced_as_a_whole,
    what_is_not_there_is_not_found,
    what_is_deleted_is_gone,
    a_file_has_another_name,
    a_data_file_is_written_read_and_taken_over,
)
