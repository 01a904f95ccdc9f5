"""What the lake server says of itself, and waiting until it has seen everything up to a pinned end."""

from __future__ import annotations

import time
from typing import Any

from infra.demo.summary import DemoError
from jobs.errors import TwinlakeError
from jobs.server.client import LakeClient
from jobs.settings import Settings

LOOK_SECONDS = 0.3


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
        while True:
            state, until = self._topic(topic), time.monotonic() + patience_s
            while not _reached(state, ends):
                if time.monotonic() > until:
                    raise DemoError(
                        f"the log of {topic} did not reach {ends} within {patience_s:.0f} s: {state}"
                    )
                time.sleep(LOOK_SECONDS)
                state = self._topic(topic)
            return int(state["batch"])

    def caught_up(self, topic: str, ends: dict[int, int], patience_s: float = 300) -> int:
        """Wait until every living version has taken the log's batches up to `ends`; returns that batch."""
        batch = self.logged(topic, ends, patience_s)
        until = time.monotonic() + patience_s
        while True:
            versions = self._patient()["versions"]
            if stalled := [one for one in versions if one["stalled"]]:
                raise DemoError(f"{stalled[0]['table']} is stalled: {stalled[0]['error']}")
            behind = [one for one in versions if one["position"] < batch]
            if not behind:
                return batch
            if time.monotonic() > until:
                raise DemoError(f"tables did not reach batch {batch} within {patience_s:.0f} s: {behind}")
            time.sleep(LOOK_SECONDS)

    def _topic(self, topic: str) -> dict[str, Any]:
        state: dict[str, Any] = next(one for one in self._patient()["topics"] if one["name"] == topic)
        return state

    def _patient(self, patience_s: float = 120) -> dict[str, Any]:
        """The status; a server that is just restarting is waited for."""
        until = time.monotonic() + patience_s
        while True:
            try:
                return self.status()
            except TwinlakeError:
                if time.monotonic() > until:
                    raise
                time.sleep(LOOK_SECONDS)


def _reached(state: dict[str, Any], ends: dict[int, int]) -> bool:
    logged = {int(partition): int(end) for partition, end in (state["ends"] or {}).items()}
    return all(logged.get(partition, 0) >= end for partition, end in ends.items())
