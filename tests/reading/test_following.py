"""Those who follow a table share its differences, and leave nothing behind: over HTTP, with made up rows."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.reading.follows import Follows, Refused, following
from tests.reading.made_up import TABLE, Server, at
from twinlake.base.errors import BusyError, DamagedError
from twinlake.base.waiting import wait_for
from twinlake.reading.changes import readers, route
from twinlake.reading.changes.position import position_of
from twinlake.reading.followed import Followed


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    with made.serving():
        yield made


def rows(reader: Follows) -> dict[str, str]:
    return {key[0]: row["v"] for key, row in reader.table.items()}


def test_a_reader_has_the_table_and_what_changes(server: Server) -> None:
    with following(server.url, TABLE) as reader:
        reader.until_at(1)
        assert rows(reader) == {"a": "1"}
        server.table.states.append({"b": 2})
        reader.until_at(2)
        server.table.states.append({"b": 3, "c": 4})
        reader.until_at(3)
        expected = (1, 1 + 2 + 3 + 3, 0)  # that it is the whole, then three changes, each with its end
        wait_for("them to be counted", lambda: server.measured() == expected or None, 10)

    assert rows(reader) == {"b": "3", "c": "4"} and reader.wholes == ["it is the beginning"]
    server.until_left()
    wait_for("none to follow", lambda: server.measured()[0] == 0 or None, 10)
    assert server.table.closed == len(server.table.made) == 3


def test_all_at_one_place_share_one_difference(server: Server) -> None:
    server.table.slow_s = 0.5
    with ExitStack() as many:
        readers = [many.enter_context(following(server.url, TABLE, "now")) for _ in range(8)]
        for one in readers:
            one.until_at(1)
        server.table.states.append({"a": 2})
        for one in readers:
            one.until_at(2)

    assert server.table.made == [("1", "2")]
    server.until_left()
    assert server.table.closed == 1


def test_one_who_comes_back_gets_what_differs_and_one_too_far_behind_the_whole(server: Server) -> None:
    with following(server.url, TABLE) as reader:
        reader.until_at(1)
    server.table.states += [{"b": 2}, {"b": 3}]
    held = Follows(table=dict(reader.table))
    with following(server.url, TABLE, last=reader.at, since="beginning", held=held) as again:
        again.until_at(3)
    assert rows(again) == {"b": "3"} and again.wholes == []

    server.table.is_kept = False
    with following(server.url, TABLE, reader.at, held=Follows(table={("x",): {"v": "?"}})) as late:
        late.until_at(3)
    assert rows(late) == {"b": "3"} and late.wholes == [route.LOST]


def test_a_position_of_before_rights_were_in_it_gives_the_whole_once(server: Server) -> None:
    old = position_of(TABLE, 1, at(1).pin).text
    with following(server.url, TABLE, old, held=Follows(table={("x",): {"v": "?"}})) as reader:
        reader.until_at(1)
    assert reader.wholes == [route.CHANGED] and rows(reader) == {"a": "1"}

    with following(server.url, TABLE, reader.at, held=Follows(table=dict(reader.table))) as again:
        again.until_at(1)
    assert again.wholes == []


def test_who_asks_before_it_is_known_what_is_live_is_told_so(server: Server) -> None:
    server.table.followed = Followed()
    with pytest.raises(Refused) as refused, following(server.url, TABLE):
        pass

    assert (refused.value.status, refused.value.error["what"]) == (503, "the SQL server is starting")


def test_one_who_leaves_takes_nothing_from_those_who_stay(server: Server) -> None:
    server.table.slow_s = 1.0
    with following(server.url, TABLE, "now") as stays:
        stays.until_at(1)
        with following(server.url, TABLE, "now") as leaves:
            leaves.until_at(1)
            server.table.states.append({"a": 2})
            feed = server.table._feeds[TABLE]
            wait_for("it to be computed", lambda: feed._shared or None, 10, every_s=0.01)
        stays.until_at(2)

    assert rows(stays) == {"a": "2"} and server.table.made == [("1", "2")]
    server.until_left()
    assert server.table.closed == 1 and server.table._feeds == {}


def test_an_error_is_the_last_event_and_a_new_reader_gets_it_as_an_answer(server: Server) -> None:
    with following(server.url, TABLE) as reader:
        reader.until_at(1)
        server.table.error = DamagedError("a file is damaged", "it is torn", "restore it")
        reader.until(lambda one: one.ended)
    assert reader.ended is not None and reader.ended["what"] == "a file is damaged"
    with pytest.raises(Refused) as refused, following(server.url, TABLE):
        pass
    assert (refused.value.status, refused.value.error["remedy"]) == (503, "restore it")

    server.table.error = None
    with following(server.url, TABLE, reader.at, held=Follows(table=dict(reader.table))) as again:
        again.until_at(1)


def test_whose_rights_change_or_who_is_cancelled_gets_no_more(server: Server) -> None:
    with following(server.url, TABLE) as reader:
        reader.until_at(1)
        server.table.rights = "less"
        reader.until(lambda one: one.ended)
        server.table.states.append({"a": 2})
    assert "rights of ben have changed" in str(reader.ended) and len(reader.changes) == 1
    held = Follows(table={**reader.table, ("gone",): {"v": "?"}})
    with following(server.url, TABLE, last=reader.at, held=held) as again:
        again.until_at(2)
    assert again.wholes == [route.CHANGED] and rows(again) == {"a": "2"}

    with following(server.url, TABLE) as other:
        other.until_at(2)
        server.running.end_of("ben", BusyError("it was cancelled", "olga has done it"), lasting_alone=True)
        other.until(lambda one: one.ended)
    assert other.ended is not None and other.ended["why"] == "olga has done it"


def test_a_comment_comes_when_nothing_else_does(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "HEARTBEAT_S", 1.0)
    with following(server.url, TABLE, "now") as reader:
        reader.until(lambda one: one.comments >= 2)


def test_more_readers_than_are_allowed_are_refused_and_places_become_free(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "OF_ONE_USER", 2)
    with following(server.url, TABLE, "now"), following(server.url, TABLE, "now"):
        with pytest.raises(Refused) as refused, following(server.url, TABLE, "now"):
            pass
    assert refused.value.status == 503 and "2 of one login" in refused.value.error["why"]
    server.until_left()
    with following(server.url, TABLE, "now") as reader:
        reader.until_at(1)


def test_one_who_takes_nothing_is_cut_off_and_others_go_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route.wire, "SLOW_S", 2.0)
    server.table.padding = "x" * 200_000
    server.table.states = [{str(number): number for number in range(200)}]  # 40 MB
    with socket.create_connection(server.url.removeprefix("http://").rsplit(":", 1)) as slow:  # type: ignore[arg-type]
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(f"GET /tables/{TABLE}/changes HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        wait_for("it to be sent", lambda: server.listed or None, 10, every_s=0.01)
        held = Follows(table={(str(number),): {} for number in range(200)})
        with following(server.url, TABLE, "now", held=held) as quick:
            quick.until_at(1)
            wait_for("the slow one to be cut off", lambda: len(server.listed) == 1 or None, 20)
            server.table.states.append({})
            quick.until_at(2)

    assert quick.changes[-1]["deletes"] == 200
    assert server.measured()[2] == 1


def test_what_is_asked_wrongly_is_refused(server: Server) -> None:
    def status(path: str, **headers: str) -> int:
        return httpx.get(server.url + path, headers=headers, trust_env=False, timeout=10).status_code

    assert status("/tables/none/changes") == 404
    assert status(f"/tables/{TABLE}/changes?since=now") == 400
    assert status(f"/tables/{TABLE}/changes?from=nonsense") == 400
    assert status(f"/tables/{TABLE}/changes", **{"Last-Event-ID": "nonsense"}) == 400
    assert status(f"/tables/{TABLE}/changes", **{"Sec-Fetch-Site": "same-site"}) == 400
    assert status(f"/tables/{TABLE}/changes", Accept="text/html") == 200
