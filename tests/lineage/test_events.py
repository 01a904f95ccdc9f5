"""What a real lake server tells OpenLineage, and what becomes of it where the receiver is away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from openlineage.client import event_v2 as ol
from pyspark.sql import SparkSession

from tests.project import OURS, TABLES
from tests.releases.lake import Lake, following_sql_server, order
from twinlake.base.location import Remote
from twinlake.base.waiting import wait_for
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog.version import Version
from twinlake.lineage import lineage as module
from twinlake.lineage import sender as sending
from twinlake.lineage.events import Events
from twinlake.lineage.lineage import Lineage
from twinlake.lineage.sender import Sender
from twinlake.topics.topic import load_topic


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def done(lake: Lake, kind: str, **params: Any) -> dict[str, Any]:
    job = lake.server.jobs.submit(kind, params)
    job = wait_for(kind, lambda: ((found := lake.server.jobs.wait(job.id, 1)).ended and found) or None, 120)
    return job.succeeded()


def fields(event: dict[str, Any], dataset: str) -> dict[str, list[tuple[str, str]]]:
    """By column of this output, what it is made of: the end of a data set's name, and its column."""
    (output,) = [one for one in event["outputs"] if dataset in one["name"]]
    found = output["facets"]["columnLineage"]["fields"]
    return {
        name: [(one["name"].rpartition("/")[2], one["field"]) for one in made.get("inputFields", [])]
        for name, made in found.items()
    }


def stored(lake: Path, table: Kind) -> Version:
    version = Version(
        table=table.name, fingerprint="f" * 64, build=1, definition=table.to_json(), topics=("orders",),
        contracts={}, created_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    (lake / "tables" / table.name).mkdir(parents=True)
    version.save(lake)
    return version


def test_a_stream_begins_goes_on_fails_and_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By statuses as the server makes them; a real one is asked below."""
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    monkeypatch.setattr(module, "EVERY_S", 0.0)
    latest = next(table for table in TABLES if table.name == "latest_order")
    version, topic = stored(tmp_path, latest), load_topic("orders", OURS)
    sender = Sender(file := tmp_path / "lineage.jsonl")
    lineage = Lineage(tmp_path, "id", lambda: "one:9092", lambda: {"orders": topic}, sender)
    ingest: dict[str, Any] = {"name": "orders", "state": "running", "error": None, "records": 10}
    advance: dict[str, Any] = {
        "table": "latest_order", "version": version.name, "stalled": False, "error": None,
        "position": {"orders": 1},
    }  # fmt: skip

    def look(versions: list[dict[str, Any]], **changed: Any) -> None:
        status = {"topics": [{**ingest, **changed}], "versions": versions}
        lineage.look(lambda: status, lambda: [version])

    paused = {"stalled": True, "error": {"what": "it is paused"}, "paused": {"by": "anna"}}
    look([{**advance, **paused}])
    look([advance])
    look([{**advance, **paused}])
    look([advance])
    look([{**advance, "position": {"orders": 2}}], records=25)
    look([{**advance, "stalled": True, "error": {"what": "it divides by zero"}}], records=25)
    look([advance], state="stopped", records=25)
    look([])
    lineage.stop()

    told = [(one["job"]["name"].split(".")[0], one["eventType"], one["run"]["runId"]) for one in lines(file)]
    advances = [(state, run) for name, state, run in told if name == "advance"]
    ingests = [(state, run) for name, state, run in told if name == "ingest"]
    assert [state for state, _ in ingests] == ["START", "RUNNING", "COMPLETE", "START", "COMPLETE"]
    assert [state for state, _ in advances] == [
        "START", "COMPLETE", "START", "RUNNING", "FAIL", "START", "COMPLETE",
    ]  # fmt: skip
    assert [len({run for _, run in runs}) for runs in (ingests, advances)] == [2, 3]
    (running, _) = [one for one in lines(file) if one["eventType"] == "RUNNING"]
    assert running["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 15
    (failed,) = [one for one in lines(file) if one["eventType"] == "FAIL"]
    assert failed["run"]["facets"]["errorMessage"]["message"] == "it divides by zero"
    assert fields(failed, "tables/latest_order")["status"] == [("orders", "status")]


@pytest.mark.faults
def test_what_runs_and_what_is_released_is_told_column_by_column(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    home = tmp_path / "home"
    file = home / "logs" / "lineage.jsonl"
    with following_sql_server(home / "lake") as sql_url:
        lake = Lake(spark, home, sql_url)
        try:
            lake.append([order(number) for number in range(20)])
            plan = lake.plan({table.name: table for table in TABLES})["id"]
            wait_for("the ingest is told", lambda: lines(file) or None, 60)
            done(lake, "build", plan=plan)
            done(lake, "promote", plan=plan, approved_by="ann")
            done(lake, "rebuild", table="latest_order")
            wait_for("versions", lambda: len({one["job"]["name"] for one in lines(file)}) > 5 or None, 60)
        finally:
            lake.stop()

    told = [(one["job"]["name"], one["eventType"]) for one in lines(file)]
    names = [name for name, _ in told]
    ended = {name for name, state in told if state == "COMPLETE"}
    assert ("ingest.orders", "START") in told and ("release", "COMPLETE") in told
    assert ended == set(names) and {"build", "rebuild.latest_order"} <= ended
    assert any(name.startswith("advance.latest_order.") for name in ended)

    def told_of(name: str, state: str) -> dict[str, Any]:
        (found,) = [one for one in lines(file) if (one["job"]["name"], one["eventType"]) == (name, state)]
        return found

    ingest = told_of("ingest.orders", "START")
    assert ingest["inputs"][0]["name"] == "orders"
    assert fields(ingest, "/logs/orders")["amount"] == [("orders", "amount")]
    rebuilt = told_of("rebuild.latest_order", "COMPLETE")
    assert fields(rebuilt, "latest_order")["status"] == [("orders", "status")]
    released = told_of("release", "COMPLETE")
    assert len(released["outputs"]) == len(TABLES)
    assert fields(released, "serve.orders")["amount"] == [("orders", "amount")]
    assert [name for _, name in fields(released, "serve.sales_per_region")["sales"]] == ["sales"]


class Receiver:
    """Takes what is posted to it, or answers 503."""

    def __init__(self) -> None:
        self.is_away, self.got, self.asked = True, list[dict[str, Any]](), 0
        self.refused: set[str] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked += 1
                event = json.loads(body)
                is_refused = event["run"]["runId"][-1] in outer.refused
                if not outer.is_away and not is_refused:
                    outer.got.append({"key": self.headers["Authorization"], "body": event})
                self.send_response(503 if outer.is_away else 422 if is_refused else 201)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """It says nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.server.shutdown()


def event(number: int) -> ol.RunEvent:
    run = ol.Run(f"00000000-0000-4000-8000-{number:012d}")
    return ol.RunEvent(eventType=ol.RunState.START, eventTime="2026-01-01T00:00:00Z", run=run,
                       job=ol.Job("n", "j"), producer="urn:twinlake:1")  # fmt: skip


def test_a_receiver_that_was_away_gets_all_in_order_but_what_it_refuses_and_is_shown_the_key(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "AGAIN_S", 0.05)
    key, file = tmp_path / "key", tmp_path / "lineage.jsonl"
    key.write_text("s3cret\n")
    key.chmod(0o600)
    sender = Sender(file, f"http://127.0.0.1:{receiver.server.server_port}", key)
    for number in range(3):
        sender.put(event(number))
    wait_for("two tries", lambda: receiver.asked >= 2 or None, 30)
    assert len(lines(file)) == 3 and receiver.got == []

    receiver.is_away, receiver.refused = False, {"1"}
    wait_for("all but the one", lambda: len(receiver.got) == 2 or None, 30)
    sender.put(event(3))
    sender.stop()

    assert [one["body"]["run"]["runId"][-1] for one in receiver.got] == ["0", "2", "3"]
    assert {one["key"] for one in receiver.got} == {"Bearer s3cret"}
    assert len(lines(file)) == 4 and "s3cret" not in file.read_text()


def test_places_are_named_as_openlineage_names_them() -> None:
    events = Events(Remote("hdfs://name-node:8020/lake"), "id", "one:9092,two:9092")

    kafka, log = events.topic("orders"), events.log(load_topic("orders", OURS))
    assert (kafka.namespace, kafka.name) == ("kafka://one:9092", "orders")
    assert (log.namespace, log.name) == ("hdfs://name-node:8020", "/lake/logs/orders")


def test_a_stream_that_cannot_be_told_keeps_no_other_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    topics = {name: load_topic("orders", OURS) for name in ("broken", "orders")}
    sender = Sender(file := tmp_path / "lineage.jsonl")
    lineage = Lineage(tmp_path, "id", lambda: "one:9092", lambda: topics, sender)
    topics["broken"] = None  # type: ignore[assignment]
    ingest = {"state": "running", "error": None, "records": 1}
    status = {"topics": [{**ingest, "name": name} for name in topics], "versions": []}

    lineage.look(lambda: status, lambda: [])
    lineage.stop()

    assert [(one["job"]["name"], one["eventType"]) for one in lines(file)] == [
        ("ingest.orders", "START"), ("ingest.orders", "COMPLETE"),
    ]  # fmt: skip


def test_a_key_that_is_not_there_yet_is_read_later(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "AGAIN_S", 0.05)
    receiver.is_away, key = False, tmp_path / "key"
    sender = Sender(None, f"http://127.0.0.1:{receiver.server.server_port}", key)
    sender.put(event(0))
    key.write_text("late\n")
    key.chmod(0o600)

    wait_for("the event", lambda: receiver.got or None, 30)
    sender.stop()

    assert receiver.got[0]["key"] == "Bearer late"


def test_a_file_that_cannot_be_made_is_an_error_and_the_next_is_tried(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("")
    sender = Sender(tmp_path / "folder" / "lineage.jsonl")
    with pytest.raises(OSError):
        sender.put(event(0))
    (tmp_path / "folder").unlink()

    sender.put(event(1))

    assert len(lines(tmp_path / "folder" / "lineage.jsonl")) == 1


def test_nothing_is_written_where_it_is_off(tmp_path: Path) -> None:
    assert not Sender(None).is_on
