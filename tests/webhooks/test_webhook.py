"""Whoever takes what a webhook posts has what the table shows, at every position: real Spark, Delta, HTTP."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.releases.lake import order
from tests.releases.table_stage import DEFINED, LATEST, SALES, TableStage
from tests.webhooks.receiver import Got, Receiver, receiving
from twinlake.base import as_json
from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.base.job import Run
from twinlake.base.waiting import wait_for
from twinlake.config.sections import Webhooks
from twinlake.difference.changed import ALL_KEYS, TOUCHED
from twinlake.lake import table_workers
from twinlake.webhooks import deliverer, posted
from twinlake.webhooks.deliverer import WHOLE

SECRET = "known-to-both"
CHANGED = {**DEFINED, SALES: replace(DEFINED[SALES], where="status <> 'cancelled'")}


class Stage(TableStage):
    """A lake whose server posts changes."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        home.mkdir(exist_ok=True)
        secret = home / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        (home / "twinlake.toml").write_text(f'[webhooks]\nsecret_file = "{secret}"\n')
        super().__init__(spark, home, "webhooks", {})
        self.batches = 0
        self.lake.promote(self.lake.build(DEFINED))

    def append(self, *numbers: int, **changed: Any) -> None:
        self.batches += 1
        self.lake.append([order(number, **changed) for number in numbers])

    def posts(self, table: str, url: str, **more: Any) -> dict[str, Any]:
        return self.lake.do("webhook", table=table, url=url, **more)

    def until_posted(self, table: str) -> dict[str, Any]:
        return self.until_at(table, self.batches)

    def view(self, table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        opened, view = self.opened(table)
        keys = opened.definition.view_keys
        rows = view.select(*opened.definition.timeless).toArrow().to_pylist()
        told = [{name: as_json.to_json(value) for name, value in row.items()} for row in rows]
        return {tuple(row[key] for key in keys): row for row in told}


@pytest.fixture(scope="module")
def stage(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    patched = pytest.MonkeyPatch()
    patched.setattr(table_workers, "RETRY_LAST_S", 0.5)
    patched.setattr(table_workers, "RETRY_FIRST_S", 0.2)
    patched.setattr(deliverer, "MOST_ROWS", 3)
    found = Stage(spark, tmp_path_factory.mktemp("webhooks") / "home")
    found.append(*range(40))
    yield found
    found.close()
    patched.undo()


@pytest.fixture
def receiver(stage: Stage) -> Iterator[Receiver]:
    with receiving() as found:
        yield found
        stage.end_all("webhook")


def is_signed(got: Got) -> bool:
    at, _, signature = got.signature.removeprefix("t=").partition(",v1=")
    return signature == hmac.new(SECRET.encode(), at.encode() + b"." + got.body, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("table", [SALES, LATEST])
def test_at_every_position_the_receiver_has_what_the_view_shows(
    stage: Stage, receiver: Receiver, table: str
) -> None:
    stage.posts(table, receiver.url, **{"from": "beginning"})
    assert stage.until_posted(table)["way"] == WHOLE
    assert receiver.table == stage.view(table)
    begin = 100 * stage.batches
    for status in ("paid", "cancelled", "paid"):
        stage.append(*range(begin, begin + 4), status=status)
        assert stage.until_posted(table)["way"] == TOUCHED
        assert receiver.table == stage.view(table)

    assert all(map(is_signed, receiver.got))
    assert [one.said["whole"] for one in receiver.got].count(True) == len(
        [one for one in receiver.got if one.said["id"] == receiver.got[0].said["id"]]
    )
    keys = [one.key for one in receiver.got]
    kinds = ["/whole" if one.said["whole"] else "" for one in receiver.got]
    said = [one.said for one in receiver.got]
    assert keys == [f"{one['id']}{kind}/{one['part']}" for one, kind in zip(said, kinds, strict=True)]
    assert len({*keys}) == len(keys)


def test_from_now_only_what_changes_is_posted(stage: Stage, receiver: Receiver) -> None:
    stage.posts(LATEST, receiver.url)
    stage.until_posted(LATEST)
    assert receiver.got == []

    stage.append(100 * stage.batches + 1)
    stage.until_posted(LATEST)

    (got,) = receiver.got
    assert [row["customer"] for row in got.said["upserts"]] == ["c1"] and not got.said["whole"]


def test_what_is_refused_is_posted_again_the_same_and_nothing_goes_before_it(
    stage: Stage, receiver: Receiver
) -> None:
    stage.posts(LATEST, receiver.url, **{"from": "beginning"})
    stage.until_posted(LATEST)
    done = len(receiver.got)
    refusing = {"on": True}
    receiver.answers = lambda got: 503 if refusing["on"] and got.said["part"] == 2 else 200
    begin = 100 * stage.batches
    stage.append(*range(begin, begin + 9), status="paid")
    error = stage.until_error(LATEST, TwinlakeError)
    assert "answered 503" in error["why"] and "127.0.0.1" in error["why"] and "/changes" not in error["why"]
    assert stage.status(LATEST)["state"] == "failing" and stage.status(LATEST)["tries"] >= 1
    before = receiver.table
    stage.append(begin + 20, status="paid")  # meanwhile the table goes on
    refusing["on"] = False
    stage.until_posted(LATEST)

    assert receiver.table == stage.view(LATEST) != before
    by_key: dict[str, set[bytes]] = {}
    for one in receiver.got[done:]:
        by_key.setdefault(one.key, set()).add(one.body)
    assert all(len(bodies) == 1 for bodies in by_key.values())
    positions = [one.said["id"] for one in receiver.got[done:]]
    assert len(set(positions)) == 2 and positions == sorted(positions, key=positions.index)
    assert stage.status(LATEST)["tries"] == 0


def test_a_server_that_ends_before_it_knows_of_the_acceptance_posts_the_same_again(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.posts(LATEST, receiver.url, **{"from": "beginning"})
    stage.until_posted(LATEST)
    done = len(receiver.got)

    def dies(point: Any, *_: Any) -> None:
        raise OSError("as if it had been killed here")

    monkeypatch.setattr(deliverer, "breakpoints", SimpleNamespace(at=dies))
    stage.append(100 * stage.batches + 7, status="paid")
    stage.until_error(LATEST, TwinlakeError)
    monkeypatch.undo()
    stage.restart()
    stage.append(100 * stage.batches + 8, status="paid")
    stage.until_posted(LATEST)

    told = receiver.got[done:]
    assert len(told) >= 3 and told[0].body == told[1].body
    assert receiver.table == stage.view(LATEST)


@pytest.mark.faults
def test_a_swap_posts_what_differs_and_a_rollback_takes_it_back(stage: Stage, receiver: Receiver) -> None:
    stage.posts(SALES, receiver.url, **{"from": "beginning"})
    stage.until_posted(SALES)
    before = receiver.table
    stage.lake.promote(stage.lake.build(CHANGED))
    assert stage.until_posted(SALES)["way"] == ALL_KEYS
    assert receiver.table == stage.view(SALES) != before

    stage.lake.do("rollback", approved_by="tester")
    stage.until_posted(SALES)

    assert receiver.table == before == stage.view(SALES)


def test_what_happened_while_it_was_off_is_posted_and_another_address_begins_by_itself(
    stage: Stage, receiver: Receiver
) -> None:
    stage.posts(LATEST, receiver.url, **{"from": "beginning"})
    stage.until_posted(LATEST)
    stage.lake.do("webhook", table=LATEST, stop=True)
    done = len(receiver.got)
    stage.append(100 * stage.batches + 3, status="paid")
    stage.posts(LATEST, receiver.url)
    stage.until_posted(LATEST)
    assert receiver.table == stage.view(LATEST) and not receiver.got[done].said["whole"]
    stage.lake.do("webhook", table=LATEST, stop=True)

    with receiving() as other:
        stage.posts(LATEST, other.url, **{"from": "beginning"})
        stage.until_posted(LATEST)
        assert other.got[0].said["whole"] and other.table == stage.view(LATEST)
        stage.lake.do("webhook", table=LATEST, stop=True)


def test_what_was_on_its_way_for_too_long_is_followed_by_the_whole(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.posts(LATEST, receiver.url, **{"from": "beginning"})
    stage.until_posted(LATEST)
    receiver.answers = lambda got: 500
    stage.append(100 * stage.batches + 5, status="paid")
    stage.until_error(LATEST, TwinlakeError)
    monkeypatch.setattr(deliverer, "is_readable", lambda *_: False)  # as if its commits were cleaned up
    folder = stage.lake.path / "webhooks" / "positions"
    wait_for("it to be given up", lambda: posted.load(folder, LATEST, receiver.url).next_whole or None, 60)
    monkeypatch.undo()
    receiver.answers = lambda got: 200
    stage.until_posted(LATEST)

    assert receiver.got[-1].said["whole"] and receiver.table == stage.view(LATEST)


def test_a_redirect_is_no_acceptance(stage: Stage, receiver: Receiver) -> None:
    receiver.answers = lambda got: 302
    stage.posts(LATEST, receiver.url, **{"from": "beginning"})

    assert "answered 302" in stage.until_error(LATEST, TwinlakeError)["why"]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://example.com/changes", "https://"),
        ("https://user:word@example.com/changes", "login"),
        ("https://example.com/changes#part", "fragment"),
        ("https://example.com:99999/changes", "no port"),
    ],
)
def test_an_address_is_refused(stage: Stage, url: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        stage.posts(LATEST, url)

    assert says in str(refused.value) and stage.lake.server.status()["webhooks"] == []


@pytest.mark.parametrize("url", ["ftp://example.com/x", "https://", "example.com", "https://a b/c"])
def test_what_is_no_address_is_refused_before_it_is_a_job(stage: Stage, url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        stage.posts(LATEST, url)


def test_a_table_has_one_webhook_and_what_has_none_cannot_be_stopped(
    stage: Stage, receiver: Receiver
) -> None:
    stage.posts(LATEST, receiver.url)
    assert stage.posts(LATEST, receiver.url)["table"] == LATEST
    with pytest.raises(UsageError, match="are posted already"):
        stage.posts(LATEST, receiver.url + "/other")
    with pytest.raises(NotFoundError, match="has no webhook"):
        stage.lake.do("webhook", table=SALES, stop=True)


def test_without_a_secret_nothing_is_posted(stage: Stage, receiver: Receiver) -> None:
    settings = stage.lake.server.settings
    values = settings.values.model_copy(update={"webhooks": Webhooks()})
    without = replace(settings, known_values=values)
    lake = replace(stage.lake.server.lake, settings=without)

    with pytest.raises(UsageError, match="without a signature") as refused:
        lake.webhooks.start(lake, LATEST, receiver.url, "now", Run(id="test"))
    assert "then `twinlake down` and `twinlake up`" in refused.value.remedy
