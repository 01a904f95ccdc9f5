"""What is posted of a change: parts in order, each once that before it is accepted, signed; without Spark."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.history import LATEST, version_of
from tests.webhooks.receiver import Receiver, receiving
from twinlake.base.errors import BusyError, TwinlakeError, UnreachableError
from twinlake.lake.catalog.version import Pin
from twinlake.reading.changes.position import EVERYTHING, parse
from twinlake.webhooks import deliverer
from twinlake.webhooks.deliverer import Deliverer
from twinlake.webhooks.posted import Place, Posted, load, place_of, save

SECRET = "known-to-both"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
PIN = Pin(
    version=version_of(LATEST), position={"orders": 7}, watermarks={"orders": 1}, clocks={"orders": {"c": 2}},
    delta_version=9, step=3,
)  # fmt: skip
ROWS = [{"gone": None, "row": {"customer": f"c{number}"}} for number in range(7)]
OPENED: Any = SimpleNamespace(definition=SimpleNamespace(view_keys=("customer",)))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def posts(receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(deliverer, "MOST_ROWS", 3)
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    values = SimpleNamespace(webhooks=SimpleNamespace(secret_file=secret))
    one: Any = SimpleNamespace(
        table="latest_order", _url=receiver.url, _run=SimpleNamespace(cancelled=threading.Event()),
        _lake=SimpleNamespace(settings=SimpleNamespace(values=values), clock=lambda: NOW),
    )  # fmt: skip

    def post(rows: list[Any], is_whole: bool = False) -> int:
        answer: Any = SimpleNamespace(rows=lambda: iter([rows[:5], rows[5:]]))
        return Deliverer._post_all(one, place_of(4, PIN), PIN, OPENED, answer, is_whole)

    post.one = one  # type: ignore[attr-defined]
    return post


def test_a_change_goes_out_in_parts_that_are_signed_and_named(posts: Any, receiver: Receiver) -> None:
    gone = {"gone": {"customer": "c9"}, "row": None}

    assert posts([*ROWS, gone], is_whole=True) == 8

    said = [got.said for got in receiver.got]
    assert [len(one["upserts"]) + len(one["deletes"]) for one in said] == [3, 3, 2]
    assert [one["more"] for one in said] == [True, True, False] and {one["whole"] for one in said} == {True}
    assert {one["id"] for one in said} == {parse("latest_order", said[0]["id"]).text}
    assert parse("latest_order", said[0]["id"]).is_of(EVERYTHING)
    assert [got.key for got in receiver.got] == [f"{said[0]['id']}/whole/{part}" for part in (1, 2, 3)]
    for got in receiver.got:
        assert got.signature == "t=1769860800,v1=" + hmac.new(
            SECRET.encode(), b"1769860800." + got.body, hashlib.sha256
        ).hexdigest()
    assert set(receiver.table) == {(f"c{number}",) for number in range(7)}


def test_a_change_without_rows_is_one_part_that_says_the_position(posts: Any, receiver: Receiver) -> None:
    assert posts([]) == 0

    (got,) = receiver.got
    assert (got.said["part"], got.said["more"], got.said["position"]) == (1, False, {"orders": 7})


def test_nothing_goes_out_after_what_was_not_accepted(posts: Any, receiver: Receiver) -> None:
    receiver.answers = lambda got: 503 if got.said["part"] == 2 else 200
    with pytest.raises(TwinlakeError, match="answered 503"):
        posts(ROWS)
    assert [got.said["part"] for got in receiver.got] == [1, 2]

    receiver.answers = lambda got: 200
    before = list(receiver.got)
    posts(ROWS)
    assert [got.body for got in receiver.got[2:4]] == [got.body for got in before]


def test_a_redirect_is_not_followed_and_who_is_away_is_named_by_the_host(
    posts: Any, receiver: Receiver
) -> None:
    receiver.answers = lambda got: 302
    with pytest.raises(TwinlakeError, match="answered 302"):
        posts(ROWS)
    assert len(receiver.got) == 1

    posts.one._url = "http://127.0.0.1:1/secret-path"
    with pytest.raises(UnreachableError) as away:
        posts(ROWS)
    assert "127.0.0.1" in str(away.value) and "secret-path" not in str(away.value)


def test_one_that_is_stopped_posts_no_further_part(posts: Any, receiver: Receiver) -> None:
    receiver.answers = lambda got: posts.one._run.cancelled.set() or 200
    with pytest.raises(BusyError):
        posts(ROWS)

    assert len(receiver.got) == 1


def test_what_is_written_down_is_read_again_and_of_another_address_nothing(tmp_path: Path) -> None:
    folder, url = tmp_path / "positions", "https://example.com/c"
    sent, then = place_of(4, PIN), Place(release=5, pin={**place_of(5, PIN).pin, "delta_version": 10})
    posted = Posted(url=url, sent=sent).begins(then, is_whole=False)
    save(folder, "latest_order", posted)

    assert load(folder, "latest_order", url) == posted
    assert load(folder, "latest_order", "https://example.com/d") == Posted(url="https://example.com/d")
    assert load(folder, "other", url) == Posted(url=url)
    assert sent.pinned("latest_order", lambda table, name: PIN.version) == PIN
