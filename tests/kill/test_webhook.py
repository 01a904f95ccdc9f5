"""kill -9 while changes are posted: the receiver misses nothing, on a real broker, server and HTTP."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.demo.story import CHANGED as SALES
from tests.kill.server import LakeProcess, lake_process
from tests.kill.test_changelog import MEASURES, sales
from tests.webhooks.receiver import Receiver, receiving
from twinlake.base import as_json
from twinlake.base.breakpoints import Point

RECORDS = 2_000


@dataclass
class Posted:
    server: LakeProcess
    receiver: Receiver

    def until_there(self) -> None:
        self.server.until_at_end("webhooks", 300)

    def wrong(self) -> dict[str, Any]:
        """By position, the keys that the receiver had there otherwise than the log's records make them."""
        valid, found = self.server.valid_events(), {}
        for position, table in self.receiver.states.items():
            batch = int(position.split("orders=")[1].split(".")[0])
            shown = {key: tuple(row[name] for name in MEASURES) for key, row in table.items()}
            made = sales([event for number, event in valid if number <= batch], without_cancelled=False)
            expected = {
                (region, as_json.to_json(window)): tuple(map(as_json.to_json, measures))
                for (region, window), measures in made.items()
            }
            if shown != expected:
                found[position] = {
                    key: (shown.get(key), expected.get(key))
                    for key in shown.keys() | expected.keys()
                    if shown.get(key) != expected.get(key)
                }
        return found


@pytest.fixture(scope="module")
def posted(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Posted]:
    folder: Path = tmp_path_factory.mktemp("webhook")
    with lake_process(folder, seed) as server, receiving() as receiver:
        secret = server.home / "secret"
        secret.write_text("known-to-both")
        secret.chmod(0o600)
        with (server.home / "twinlake.toml").open("a") as settings:
            settings.write(f'\n[webhooks]\nsecret_file = "{secret}"\n')
        server.start()
        server.release()
        server.produce(RECORDS)
        server.do("webhook", table=SALES, url=receiver.url, **{"from": "beginning"})
        found = Posted(server, receiver)
        found.until_there()
        yield found


@pytest.mark.faults
@pytest.mark.parametrize("round", range(2))
def test_a_server_that_is_killed_before_it_knows_of_an_acceptance_posts_the_same_again(
    posted: Posted, round: int
) -> None:
    server, receiver = posted.server, posted.receiver
    server.stop_at(Point.BEFORE_POSTED)
    server.produce(RECORDS)
    server.until_stopped_at(Point.BEFORE_POSTED)
    server.kill()
    accepted = {one.key: one.body for one in receiver.got}
    server.produce(RECORDS)  # meanwhile the table would lead further
    before = len(receiver.got)
    server.start()
    posted.until_there()

    again = list(itertools.takewhile(lambda one: one.key in accepted, receiver.got[before:]))
    assert again and all(one.body == accepted[one.key] for one in again)
    assert posted.wrong() == {}


@pytest.mark.faults
def test_a_server_that_is_killed_between_two_parts_goes_on_with_the_same_change(posted: Posted) -> None:
    server, receiver = posted.server, posted.receiver
    taken = len(receiver.got)
    receiver.answers = lambda got: 503
    server.produce(RECORDS)
    server.until(lambda: len(receiver.got) > taken, 120)
    server.kill()
    refused = receiver.got[-1]
    receiver.answers = lambda got: 200
    before = len(receiver.got)
    server.produce(RECORDS)
    server.start()
    posted.until_there()

    assert (receiver.got[before].key, receiver.got[before].body) == (refused.key, refused.body)
    assert posted.wrong() == {}
