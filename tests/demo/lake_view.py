"""What the lake server says of itself, and waiting until it has seen everything up to a pinned end."""

from __future__ import annotations

from typing import Any

from tests.demo.summary import DemoError
from twinlake.base.errors import TimedOutError, TwinlakeError
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Settings
from twinlake.server.client import LakeClient

LOOK_SECONDS = 0.3
AWAY_SECONDS = 120.0


class LakeView:
    """Reads services.json anew after a restart of a part: addresses may have changed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def status(self) -> dict[str, Any]:
        return LakeClient.of(self._settings.services()).status()

    def release(self) -> int:
        return int(self.status()["release"]["number"])

    def logged(self, topic: str, ends: dict[int, int], patience_s: float) -> int:
        """Wait until the log holds every record below `ends`; returns its batch number then."""

        def batch() -> int | None:
            state = self._topic(topic)
            return int(state["batch"]) if _reached(state, ends) else None

        try:
            return wait_for(f"the log of {topic}", batch, patience_s, every_s=LOOK_SECONDS)
        except TimedOutError as error:
            what = f"the log of {topic} did not reach {ends} within {patience_s:.0f} s"
            raise DemoError(f"{what}: {self._topic(topic)}") from error

    def caught_up(self, topic: str, ends: dict[int, int], patience_s: float = 300) -> int:
        """Wait until every living version has taken the log's batches up to `ends`; returns that batch."""
        batch = self.logged(topic, ends, patience_s)
        try:
            return wait_for(
                f"the tables of {topic}", lambda: None if self._behind(topic, batch) else batch, patience_s,
                every_s=LOOK_SECONDS,
            )  # fmt: skip
        except TimedOutError as error:
            what = f"tables did not reach batch {batch} within {patience_s:.0f} s"
            raise DemoError(f"{what}: {self._behind(topic, batch)}") from error

    def _behind(self, topic: str, batch: int) -> list[dict[str, Any]]:
        """The versions that have not taken the batch; DemoError when one never will."""
        versions = self._patient()["versions"]
        if stalled := [one for one in versions if one["stalled"]]:
            raise DemoError(f"{stalled[0]['table']} is stalled: {stalled[0]['error']}")
        return [one for one in versions if one["position"][topic] < batch]

    def _topic(self, topic: str) -> dict[str, Any]:
        state: dict[str, Any] = next(one for one in self._patient()["topics"] if one["name"] == topic)
        return state

    def _patient(self) -> dict[str, Any]:
        """The status; a server that is just restarting is waited for."""
        try:
            return wait_for(
                "the lake server", self.status, AWAY_SECONDS, every_s=LOOK_SECONDS, unready=(TwinlakeError,),
                remedy="see `twinlake logs lake`",
            )  # fmt: skip
        except TimedOutError as error:
            raise DemoError(str(error)) from error


def _reached(state: dict[str, Any], ends: dict[int, int]) -> bool:
    logged = {int(partition): int(end) for partition, end in (state["ends"] or {}).items()}
    return all(logged.get(partition, 0) >= end for partition, end in ends.items())
