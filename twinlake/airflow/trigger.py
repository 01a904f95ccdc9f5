"""Starts one job of the lake server and waits for its end in Airflow's triggerer, without a worker slot.

The triggerer imports this module by its name: an Airflow elsewhere needs the folder of its DAGs on the
PYTHONPATH of its triggerer (docs/airflow.md). A user who clears the waiting task, or sets its state, cancels
the job; a restart of Airflow does not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from twinlake.airflow.connection import lake_server
from twinlake.base.errors import TwinlakeError, UnreachableError
from twinlake.base.job import AGAIN, Asker, Job
from twinlake.server.client import AWAY_S, LakeClient, now_and_then

LOOK_S = 1.0
"""A look at a job takes a few milliseconds."""
SETTLED_S = 5.0
"""Airflow tries a task again that is resumed before its scheduler has noted that its worker has ended: after
2.5 s it had not for two tasks of thirty, on two busy cores."""
CANCEL_S = 60.0
"""A job that was cancelled because it made no progress is waited for so long."""

ENDED_TASK = Asker(by="airflow", via="airflow", why="somebody cleared its task, or set its state")
STUCK = Asker(by="airflow", via="airflow", why="nothing in it went on for too long")


class LakeJobTrigger(BaseTrigger):
    """One job of this kind under this key. Its event has the `job` as it ended, or an `error`.

    `attempt` is the one that is waited for: one before it that has failed is started again, this one is not.
    `stuck` are the minutes without progress after which the job was cancelled. `by` is who asks, `why` their
    reason.
    """

    def __init__(
        self, kind: str, asked: dict[str, Any], key: str, attempt: int, by: str | None = None,
        why: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.by, self.why = by, why
        self.kind, self.asked, self.key, self.attempt = kind, asked, key, attempt
        self._client: LakeClient | None = None
        self._starting: asyncio.Future[Job] | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        fields = {"kind": self.kind, "asked": self.asked, "key": self.key, "attempt": self.attempt,
                  "by": self.by, "why": self.why}  # fmt: skip
        return f"{__name__}.{type(self).__name__}", fields

    @property
    def _asker(self) -> Asker:
        return Asker(by=self.by, via="airflow", why=self.why)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        settled = time.monotonic() + SETTLED_S
        try:
            event = await self._follow()
        except TwinlakeError as error:
            event = {"error": error.to_json()}
        await asyncio.sleep(max(0.0, settled - time.monotonic()))
        yield TriggerEvent({"key": self.key, **event})

    async def on_kill(self) -> None:
        """A user has cleared the task or set its state; also where its job was just being asked for."""
        if self._starting is not None:
            job = await self._starting
            self.log.info("somebody ended this task in Airflow: job %s is cancelled", job.id)
            await self._ask(lambda client: client.cancel(job.id, ENDED_TASK))

    async def _follow(self) -> dict[str, Any]:
        self._client = await sync_to_async(lake_server)()
        self._starting = asyncio.ensure_future(self._ask(self._start))
        job = await asyncio.shield(self._starting)
        self.log.info("%s is job %s (key %s), parameters %s", self.kind, job.id, self.key, self.asked)
        id, tell = job.id, now_and_then(self._tell)
        stuck: int | None = None
        until = float("inf")
        while not job.ended and time.monotonic() < until:
            tell(job)
            await asyncio.sleep(LOOK_S)
            job = await self._ask(lambda client: client.job(id))
            if job.idle_minutes is not None and stuck is None:
                stuck, until = job.idle_minutes, time.monotonic() + CANCEL_S
                await self._ask(lambda client: client.cancel(id, STUCK))
        self._tell(job)
        return {"job": job.to_json(), "stuck": stuck}

    def _start(self, client: LakeClient) -> Job:
        job = client.find(self.key)
        if job is not None and job.state in AGAIN and job.attempt >= self.attempt:
            return job
        return client.submit(self.kind, self.asked, key=self.key, asker=self._asker)

    async def _ask(self, what: Callable[[LakeClient], Job]) -> Job:
        """A server that restarts is waited for."""
        assert self._client is not None
        until = time.monotonic() + AWAY_S
        while True:
            try:
                return await sync_to_async(what, thread_sensitive=False)(self._client)
            except UnreachableError:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(LOOK_S)

    def _tell(self, job: Job) -> None:
        self.log.info("%s", job.summary())
