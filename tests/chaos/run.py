"""One run: three lanes beside each other, a reader, then everything settles and the oracle is asked."""

from __future__ import annotations

import shutil
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.chaos import invariants, oracle
from tests.chaos.held import Looks
from tests.chaos.plan import Event, Lane, drawn, least
from tests.chaos.reader import Reader
from tests.chaos.tables import PROMISED
from tests.chaos.traffic import Traffic
from tests.chaos.work import SALES_CHANGES, Work
from tests.chaos.world import START_S, TOPIC, Journal, World, world
from tests.project import PROJECT
from tests.releases.promised import project_of
from tests.states import log_history
from twinlake.lake.catalog import release_log

ANSWERS_A_MINUTE = 4
"""The reader asks up to forty times a minute, and waits while the SQL server is away."""
SORTS = {
    "kill": "kills", "freeze": "freezes", "full disk": "full disks", "promote": "promotions",
    "rollback": "rollbacks", "mend and replay": "replays", "replay": "replays", "send": "sendings",
}  # fmt: skip


def run(folder: Path, minutes: float, seed: int) -> Journal:
    """Its `wrong` is empty where everything holds."""
    print(f"{minutes:g} minutes of chaos; repeat with --minutes {minutes:g} --seed {seed}", flush=True)
    events = drawn(seed, minutes)
    project = _project(folder / "project")
    with world(folder, project, seed, Journal()) as made:
        _live(made, events, minutes, seed)
    return made.journal


def _project(folder: Path) -> Path:
    """A copy whose contract may be mended."""
    project_of(folder, PROMISED)
    shutil.copytree(PROJECT / "contracts", folder / "contracts", dirs_exist_ok=True)
    (folder / "twinlake.toml").write_text("[project]\n")
    return folder


def _live(made: World, events: list[Event], minutes: float, seed: int) -> None:
    journal = made.journal
    traffic = Traffic(servers=made.server.broker.login.client(), journal=journal)
    work, looks = Work(world=made, traffic=traffic), Looks(world=made)
    made.server.start(START_S)
    traffic.send("plain", "zstd", seed, 2_000)
    work.promote()
    made.do("changelog", "first changelog", table="sales_per_region", topic=SALES_CHANGES)
    made.start_sql()
    reader = Reader(sql=made.sql, journal=journal)
    journal.began = time.monotonic()
    journal.say("everything is up")
    doing: dict[Lane, Callable[[Event], None]] = {
        "traffic": lambda event: traffic.send(**event.params),
        "work": work.do,
        "fault": lambda event: _fault(made, event),
    }
    with ExitStack() as stack:
        for actor in (reader, looks):
            thread = threading.Thread(target=_to_the_end, args=(journal, actor.run))
            thread.start()
            stack.callback(thread.join)
            stack.callback(actor.ending.set)
        ending = threading.Event()
        stack.callback(ending.set)
        lanes = [
            threading.Thread(target=_lane, args=(journal, events, lane, do, ending), daemon=True)
            for lane, do in doing.items()
        ]
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
        journal.say("the plan is done, everything settles")
        _settle(made, work, traffic)
        looks.look()
    _judge(made, work, reader, looks, minutes)


def _to_the_end(journal: Journal, run: Callable[[], None]) -> None:
    """Who looks on must do so until it is told to end."""
    try:
        run()
    except Exception:
        journal.fault(f"nobody looks on any more: {traceback.format_exc(limit=-4)}")


def _lane(
    journal: Journal, events: list[Event], lane: Lane, do: Callable[[Event], None], ending: threading.Event
) -> None:
    for event in (one for one in events if one.lane == lane):
        if ending.wait(max(0.0, event.at - journal.now_s)):
            return
        began = journal.now_s
        journal.say(f"{lane}: {event}")
        try:
            do(event)
        except Exception:
            if ending.is_set():
                return
            journal.fault(f"{lane}: {event} failed: {traceback.format_exc(limit=-4)}")
        else:
            journal.say(
                f"{lane}: {event.what} took {journal.now_s - began:.1f} s", SORTS.get(event.what, event.what)
            )


def _fault(made: World, event: Event) -> None:
    if event.what == "kill":
        made.kill(**event.params)
    elif event.what == "freeze":
        made.freeze(**event.params)
    else:
        made.fill_disk(**event.params)


def _settle(made: World, work: Work, traffic: Traffic) -> None:
    made.until("every transaction to end", made.caught_up)
    traffic.send("plain", "none", traffic.sent, 1_000)  # a reader of Kafka knows the end by a last record
    made.until("every record to be in every table", made.caught_up)
    live = release_log.live(made.server.lake)
    assert live
    made.sql.wait_until(lambda status: status["release"] == live.number)

    def told() -> bool:
        status = made.server.client.status()
        at = {topic["name"]: topic["batch"] for topic in status["topics"]}
        return all((one["position"], one["release"]) == (at, live.number) for one in status["changelogs"])

    made.until("the changelogs to have told everything", told)
    for table in live.tables:
        work.do(Event(at=made.journal.now_s, lane="work", what="verify", params={"table": table}))
    log = made.server.lake / "logs" / TOPIC
    before = log_history(log, TOPIC)[-1]
    work.do(Event(at=made.journal.now_s, lane="work", what="replay"))
    for line in invariants.replay_changed(before, log_history(log, TOPIC)[-1]):
        made.journal.fault(line)
    made.journal.say("settled; the oracle reads what Kafka has committed")
    time.sleep(3)  # the watermark that readers are shown follows the tables


def _judge(made: World, work: Work, reader: Reader, looks: Looks, minutes: float) -> None:
    journal = made.journal
    for line in oracle.wrong(made, work.traffic, work.mended, work.live_tag()):
        journal.fault(line)
    journal.counts["records"] = journal.counts["records in the log"]
    for name, wanted in least(minutes).items():
        if journal.counts[name] < wanted:
            journal.fault(f"{journal.counts[name]} {name}, fewer than {wanted}: this was no chaos")
    for line in invariants.broken_for_reader(reader.seen, work.released):
        journal.fault(line)
    if reader.answers < ANSWERS_A_MINUTE * minutes:
        journal.fault(f"a reader was answered {reader.answers} times only")
    for line in looks.risen():
        journal.fault(line)
    journal.figures = _figures(journal, reader, looks)
    rows = (f"| {name} | {value} |" for name, value in journal.figures.items())
    print("\n".join(["", "| what | |", "|---|---|", *rows]), flush=True)


def _figures(journal: Journal, reader: Reader, looks: Looks) -> dict[str, str]:
    return {
        **{name: f"{count:,}" for name, count in sorted(journal.counts.items())},
        "reader's statements": f"{reader.answers:,}", "asked while it was away": f"{reader.away:,}",
        "reader's worst wait": f"{reader.worst_s:.1f} s", "releases that it saw": f"{len(reader.seen)}",
        **{name: f"{early:.0f} then {late:.0f}" for name, (early, late) in looks.most().items()},
        "wrong": f"{len(journal.wrong)}",
    }  # fmt: skip
