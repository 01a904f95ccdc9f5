"""The jobs of a plan, one after the other: what an operator and an engineer do all day."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tests.chaos.plan import Event
from tests.chaos.tables import definitions
from tests.chaos.traffic import Traffic
from tests.chaos.world import TOPIC, World
from tests.oracle.judge import RULES
from tests.oracle.mended import Mended
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.version import load, version_file

NEWER = replace(RULES, statuses=RULES.statuses | {"refunded"})
SALES_CHANGES, LATEST_CHANGES = "sales_changes", "latest_changes"


@dataclass(kw_only=True)
class Work:
    world: World
    traffic: Traffic
    tag: int = 0
    """Of the newest definitions that were planned."""
    done: int = 0
    mended: Mended | None = None
    released: dict[int, int] = field(default_factory=dict)
    """By release, the tag that it has."""

    def do(self, event: Event) -> None:
        self.done += 1
        what = {
            "promote": self.promote, "rollback": self.rollback, "mend and replay": self.mend_and_replay,
            "replay": self.replay, "changelog": self.changelog,
        }.get(event.what)  # fmt: skip
        if what:
            what()
            return
        self._job(event.what, **event.params)

    def promote(self) -> None:
        self.tag += 1
        wanted = definitions(self.tag)
        plan = self._job("plan", definitions=wanted, tables=sorted(wanted))["id"]  # what was rolled back, too
        self._job("build", plan=plan)
        release = int(self._job("promote", plan=plan, approved_by="chaos")["release"])
        self.released[release] = self.live_tag()

    def rollback(self) -> None:
        live = release_log.live(self.world.server.lake)
        assert live
        told = self._job("rollback", approved_by="chaos", to=live.number - 1, reason="chaos")
        self.released[int(told["release"])] = self.live_tag()

    def mend_and_replay(self) -> None:
        """The topic stands still meanwhile, so that the oracle knows who was judged by which contract."""
        world = self.world
        with self.traffic.turn:
            world.until("everything to be taken", world.caught_up)
            ends = {int(partition): end for partition, end in world.ends(committed=True).items()}
            self._mend()
            self._job("reload")
            self.mended = Mended(rules=NEWER, since=ends, replayed=ends)
            told = self._job("replay", topic=TOPIC)
            world.until("what was judged again to be taken", world.caught_up)
            world.journal.say(f"judged again {told['judged']}, {told['replayed']} have another verdict")

    def replay(self) -> None:
        told = self._job("replay", topic=TOPIC)
        if told["replayed"]:
            self.world.journal.fault(f"a replay by the same contract changed {told}")

    def changelog(self) -> None:
        self._job("changelog", table="latest_order", topic=LATEST_CHANGES)

    def live_tag(self) -> int:
        """As the stored definition of the live release has it."""
        lake = self.world.server.lake
        live = release_log.live(lake)
        assert live
        version = load(version_file(lake, "totals", live.tables["totals"]))
        return int(dict(version.definition["columns"])["tag"])

    def _job(self, kind: str, **params: Any) -> dict[str, Any]:
        return self.world.do(kind, f"{self.done} {kind}", **params)

    def _mend(self) -> None:
        file = self.world.project / "contracts" / "orders.yaml"
        fixed = file.read_text().replace(
            "- value: cancelled\n", "- value: cancelled\n          - value: refunded\n"
        )
        file.write_text(fixed.replace("version: 1.0.0", "version: 1.1.0"))
