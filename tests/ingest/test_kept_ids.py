"""The index of ids that a machine keeps: over kills, torn files and logs that became other ones it judges
like the one that reads the log."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.ingest.stage import Stage
from twinlake.ingest import ids, kept_ids
from twinlake.ingest.duplicates import SLACK, Duplicates, Seen
from twinlake.ingest.kept_ids import DIGEST, KeptIds
from twinlake.lake.log.log import Log
from twinlake.topics.verdict import ALREADY_SEEN

WAY, OTHER = b"w" * DIGEST, b"o" * DIGEST
WINDOW = 10
Record = tuple[int, int, int]
RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 100)), max_size=8)


def seen(records: Sequence[Record]) -> Seen:
    high, low, times = np.array(records, dtype=np.int64).reshape(-1, 3).T
    return Seen(high=high, low=low, times=times)


class Reader:
    """Ingest without Kafka and Spark: a log, an index over it, and what is kept of that."""

    def __init__(self, folder: Path, window: int = WINDOW) -> None:
        self.folder, self.window = folder, window
        self.log: list[list[Record]] = []
        self.states = [state(0)]
        self.asked = 0
        self.start()

    def _load(self, since: int) -> Seen:
        self.asked += 1
        return seen([one for batch in self.log for one in batch if one[2] >= since])

    def start(self, way: bytes = WAY) -> int | None:
        """As another process; the batch up to which the index was kept."""
        self.kept, self.index = KeptIds(self.folder), Duplicates(self.window, self._load)
        found = self.kept.load(way, len(self.log), lambda batch: self.states[batch])
        self.known = self.states[-1]
        if found is None:
            return None
        self.index.remember(found.since, found.chunks, found.more)
        rest = seen([one for batch in self.log[found.batch :] for one in batch])
        self.index.add(rest.high, rest.low, rest.times)
        return found.batch

    def batch(self, records: Sequence[Record], now: int = 0, kept: bool = True) -> list[bool]:
        """Judged and in the log; `kept` unless the process was killed before it had written them."""
        asked = seen(records)
        repeats = self.index.judge(asked.high, asked.low, asked.times)
        valid = asked.take(~repeats)
        self.index.add(valid.high, valid.low, valid.times)
        self.index.evict(now + SLACK)
        self.log.append([one for one, again in zip(records, repeats.tolist(), strict=True) if not again])
        self.states.append(state(len(self.log)))
        if kept:
            after, self.known = self.known, self.states[-1]
            self.kept.add(valid, self.index, WAY, after=after, batch=len(self.log), state=self.known)
        return repeats.tolist()

    def restore(self, batch: int) -> None:
        """The log to an earlier state; what it reads from then on is no more of the same."""
        del self.log[batch:], self.states[batch + 1 :]


STATES = itertools.count()


def state(batch: int) -> bytes:
    """Of a log, and no other one's: it is another one each time."""
    return f"{next(STATES)} {batch}".encode().ljust(DIGEST)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ids, "LEAST", 4)


THEN = ("goes on", "goes on", "is killed", "is killed early", "cut", "turned", "restored")
STEPS = st.lists(
    st.tuples(RECORDS, st.integers(0, 60), st.sampled_from(THEN), st.integers(0, 10_000)), max_size=12
)


@given(STEPS, st.booleans())
@settings(max_examples=300, deadline=None)
def test_it_judges_like_one_that_reads_the_log_wherever_it_is_killed_and_whatever_is_torn_or_restored(
    steps: list[tuple[list[Record], int, str, int]], wholes_end: bool
) -> None:
    """Without `wholes_end` whoever is killed has never come to the end of one that it has begun last."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        kept, plain = Reader(Path(folder) / "a"), Reader(Path(folder) / "b")
        for records, now, then, place in steps:
            dies = then != "goes on" and not wholes_end
            patched.setattr(KeptIds, "_write_whole", killed if dies else WRITE_WHOLE)
            assert kept.batch(records, now, then != "is killed early") == plain.batch(
                records, now, kept=False
            )
            if then == "goes on":
                continue
            kept.kept.close()  # a thread does not outlive its process
            if then in ("cut", "turned"):
                damage(sorted((Path(folder) / "a").iterdir()), place, then)
            if then == "restored":
                kept.restore(place % (len(kept.log) + 1))
                plain.restore(len(kept.log))
            kept.start()
            plain.start()
        kept.kept.close()


WRITE_WHOLE = KeptIds._write_whole


def killed(self: KeptIds, number: int, entries: object) -> None:
    """In the middle of a whole."""
    (self._folder / f"{number}.making").write_bytes(b"twinids1 and no more")


def damage(files: list[Path], place: int, how: str) -> None:
    """A file of these ends earlier, or has another byte somewhere."""
    if not files:
        return
    content = bytearray((file := files[place % len(files)]).read_bytes())
    at = place % max(1, len(content))
    if how == "cut":
        content = content[:at]
    elif content:
        content[at] ^= 255
    file.write_bytes(content)


def test_a_start_asks_the_log_of_nothing_that_is_kept(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "ids")
    for number in range(20):
        reader.batch([(number, 0, number), (number, 1, number)])
    asked = reader.asked

    reader.kept.close()
    assert reader.start() == 20
    assert reader.batch([(19, 0, 25), (20, 0, 25)]) == [True, False]
    assert reader.asked == asked == 1
    reader.kept.close()
    for _ in range(20):  # more starts leave no more files
        assert reader.start() == 21
    kinds = [one.suffix for one in (tmp_path / "ids").iterdir()]
    assert kinds.count(".whole") == 1 and len(kinds) <= 3


@pytest.mark.parametrize("became", ["restored, and has read on", "behind", "read in another way"])
def test_a_log_that_became_another_one_is_asked_itself(tmp_path: Path, became: str) -> None:
    reader = Reader(tmp_path / "ids")
    for number in range(5):
        reader.batch([(number, 0, number)])
    reader.kept.close()
    if became == "restored, and has read on":
        reader.restore(3)
        for number in (5, 6, 7):
            reader.batch([(number, 0, number)], kept=False)
    elif became == "behind":
        reader.restore(0)
    asked = reader.asked

    assert reader.start(OTHER if became == "read in another way" else WAY) is None
    assert reader.batch([(1, 0, 1), (7, 0, 7)])[1] == (became == "restored, and has read on")
    assert reader.asked > asked


def test_of_a_log_that_was_restored_no_batch_is_left_out_that_it_has_read_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries of before have the numbers of batches that are other ones by now."""
    monkeypatch.setattr(kept_ids, "LEAST", 100)
    reader = Reader(tmp_path / "ids")
    for number in range(6):
        reader.batch([(number, 0, 0)])
    reader.kept.close()
    reader.restore(3)
    assert reader.start() == 3
    for number in range(10, 14):
        reader.batch([(number, 0, 0)])
    reader.kept.close()

    reader.start()

    assert reader.batch([(number, 0, 0) for number in (0, 2, 5, 10, 11, 12, 13)]) == [
        True, True, False, True, True, True, True,
    ]  # fmt: skip


def test_a_window_that_became_longer_has_the_log_asked_and_the_whole_written_again(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "ids")
    reader.batch([(1, 0, 50)])
    reader.batch([(2, 0, 60)])
    reader.window = 40
    reader.kept.close()
    assert reader.start() == 2
    reader.batch([(3, 0, 60)])
    assert reader.asked == 2

    reader.kept.close()
    assert reader.start() == 3
    reader.batch([(4, 0, 60)])
    assert reader.asked == 2


def test_a_disk_without_room_costs_a_warning_and_a_slow_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path / "ids")
    reader.batch([(1, 0, 1)])
    reader.kept.close()
    real: Callable[..., None] = kept_ids._write

    def full(*given: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(kept_ids, "_write", full)
    with capture_logs() as said:
        reader.batch([(2, 0, 2)])
        reader.batch([(3, 0, 3)])
    assert [one["why"] for one in said] == ["[Errno 28] No space left on device"]
    monkeypatch.setattr(kept_ids, "_write", real)
    reader.kept._rest_until = 0.0
    assert reader.batch([(2, 0, 4)]) == [True]

    reader.kept.close()
    assert reader.start() == 4
    assert reader.batch([(3, 0, 5), (5, 0, 5)]) == [True, False]


def test_a_whole_that_could_not_be_written_is_begun_again_with_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., None] = kept_ids._write

    def full(file: BinaryIO, entry: kept_ids.Entry) -> None:
        if entry.left >= 0:  # of a whole
            raise OSError(28, os.strerror(28))
        real(file, entry)

    monkeypatch.setattr(kept_ids, "_write", full)
    reader = Reader(tmp_path / "ids")
    with capture_logs() as said:
        reader.batch([(1, 0, 1)])
        reader.kept.close()
    assert len(said) == 1
    monkeypatch.setattr(kept_ids, "_write", real)
    reader.kept._rest_until = 0.0
    reader.batch([(2, 0, 2)])
    reader.kept.close()

    assert reader.start() == 2


@pytest.mark.parametrize("of", ["more", "two states", "no number"])
def test_what_only_looks_like_a_whole_is_none(tmp_path: Path, of: str) -> None:
    reader, folder = Reader(tmp_path / "ids"), tmp_path / "ids"
    reader.batch([(1, 0, 1)])
    reader.batch([(2, 0, 2)])
    reader.kept.close()
    (whole,), (more,) = folder.glob("*.whole"), folder.glob("*.more")
    if of == "more":
        whole.unlink()
        more.rename(folder / "7.whole")
    elif of == "two states":
        (entry,) = kept_ids._entries(whole)
        with open(whole, "wb", buffering=0) as file:
            kept_ids._write(file, replace(entry, left=1, state=state(9)))
            kept_ids._write(file, entry)
    else:
        whole.rename(folder / "².whole")

    assert reader.start() is None
    assert reader.batch([(1, 0, 3), (2, 0, 3), (3, 0, 3)]) == [True, True, False]


def test_whoever_closes_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(kept_ids, "CLOSE_S", 0.1)
    monkeypatch.setattr(KeptIds, "_write_whole", lambda *given: over.wait(60))
    reader = Reader(tmp_path / "ids")
    reader.batch([(1, 0, 1)])
    reader.kept.close()

    assert reader.kept._is_writing
    over.set()


def test_it_leaves_the_log_its_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ids, "ROOM", 2**50)
    reader = Reader(tmp_path / "ids")
    with capture_logs() as said:
        reader.batch([(1, 0, 1)])

    assert ["No space left on device" in one["why"] for one in said] == [True]
    assert list((tmp_path / "ids").iterdir()) == []


@pytest.mark.parametrize("of", ["somebody else's", "a file"])
def test_a_folder_that_cannot_be_used_costs_a_warning_and_a_slow_start(tmp_path: Path, of: str) -> None:
    if of == "a file":
        (tmp_path / "ids").write_text("")
    else:
        (tmp_path / "ids").symlink_to(tmp_path / "ids")  # even root cannot enter that one
    with capture_logs() as said:
        reader = Reader(tmp_path / "ids")
        assert reader.batch([(1, 0, 1)]) == [False]

    assert len(said) == 1 and reader.batch([(1, 0, 1)]) == [True]


def test_many_small_batches_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ids, "MOST_ENTRIES", 10)
    reader = Reader(tmp_path / "ids")
    for _ in range(100):
        reader.batch([])
        reader.kept.close()

    assert sum(one.stat().st_size for one in (tmp_path / "ids").iterdir()) < 2_000


def test_what_is_far_behind_the_log_is_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ids, "MOST_BEHIND", 3)
    reader = Reader(tmp_path / "ids")
    reader.batch([(1, 0, 1)])
    reader.kept.close()
    for _ in range(3):
        reader.batch([], kept=False)
    assert reader.start() == 1
    reader.batch([], kept=False)

    assert reader.start() is None


def test_its_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "ids")
    reader.batch([(1, 0, 1)])
    reader.kept.close()

    assert {one.stat().st_mode & 0o777 for one in (tmp_path / "ids").iterdir()} == {0o600}
    assert (tmp_path / "ids").stat().st_mode & 0o777 == 0o700


def test_a_real_ingest_starts_with_what_it_has_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.create()
    stage.orders("a", "b")
    first = stage.caught_up(stage.ingest())
    stage.orders("c", partition=1)
    stage.caught_up(first)
    first.stop()
    stage.orders("a", "d")
    stage.orders("c", partition=1)

    def asked(*_: object) -> Seen:
        raise AssertionError("the log was asked")

    monkeypatch.setattr(ids, "since", asked)
    log = stage.run()

    said = ("duplicate", (ALREADY_SEEN,))
    assert stage.verdicts(log) == [
        *((0, 0, n, "valid", ()) for n in (0, 1)), (0, 0, 2, *said), (0, 0, 3, "valid", ()),
        (0, 1, 0, "valid", ()), (0, 1, 1, *said),
    ]  # fmt: skip


def test_a_real_log_that_was_restored_has_what_it_reads_again_as_valid(stage: Stage, tmp_path: Path) -> None:
    stage.create(partitions=1)
    stage.orders("a")
    log = stage.run()
    shutil.copytree(log.path, tmp_path / "before")
    stage.orders("b")
    stage.run()
    shutil.rmtree(log.path)
    shutil.copytree(tmp_path / "before", log.path)
    stage.orders("b", "a")
    stage.run()
    stage.orders("c", "b")

    verdicts = [verdict for *_, verdict, _ in stage.verdicts(stage.run())]

    assert verdicts == ["valid", "valid", "duplicate", "duplicate", "valid", "duplicate"]


def test_ids_of_other_fields_or_of_another_log_are_other_ids(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("a")
    log = stage.run()
    contract = stage.topic.contract

    def way(**changed: object) -> bytes | None:
        other = replace(stage.topic, contract=replace(contract, **changed))  # type: ignore[arg-type]
        return ids.way(Log(stage.spark, stage.settings.lake, other))

    later = stage.run(stage.lake_of(stage.settings.home / "again"))

    assert way() == way(rules=()) == ids.way(log)
    assert way(unique=None) is None
    assert len({way(), way(unique="customer"), ids.way(later)}) == 3
