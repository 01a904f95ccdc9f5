"""What a rebuild has done so far, in its job's staging folder: a second attempt goes on from there.

What a chunk's comparison found is written down before the chunk is replaced, with the number that the commit
will take as the version's batch writer. So after a kill that tells whether the commit was made, and a
difference that was repaired is not forgotten by whoever compares afterwards and finds none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

import structlog

from twinlake.base.location import Location
from twinlake.batch.due import Scope
from twinlake.definitions.fingerprint import STATE_CODE
from twinlake.kinds.windows import Windows
from twinlake.lake.catalog.certificates import NOTHING, Outcome
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.segments import Closed, batch_epoch
from twinlake.lake.delta import delta
from twinlake.lake.storage import store

log = structlog.get_logger(__name__)
Asked = list[dict[str, str | None]] | Literal["due"]
"""The windows that were asked for, or whatever is due."""


class Attempt:
    """`closed` is what all chunks are compared at; `outcome` what was found in those that are replaced.

    `scope` is what is rebuilt, `parts` its chunks once `cut` has been called; an earlier attempt's are kept.
    """

    def __init__(
        self, file: Location, job: str, feed: MaintainedVersion, closed: Closed, asked: Asked
    ) -> None:
        """Goes on where an earlier attempt ended, at the moment it had pinned, or begins at `closed`.

        It starts again if the version is another or something else was asked for, if old records may be read
        otherwise now, if somebody else has committed as the batch writer since, or if the pinned commit is
        gone.
        """
        self._file = file
        self.closed = closed
        self.scope: Scope | None = None
        self.parts: list[Windows] = []
        self.next_epoch = batch_epoch(feed)
        self.outcome = NOTHING
        topic = feed.log.topic
        start = feed.log.start
        reading = [STATE_CODE, feed.spark.version, topic.newest.fingerprint, topic.contract.version,
                   start and start.batch]  # fmt: skip
        self._about = {"version": str(feed.version), "asked": asked, "reading": reading}
        self._done: list[Any] = []
        self.files: dict[str, int] = {}
        """What was computed, with sizes; empty as long as that is not whole."""
        if store.exists(file):
            try:
                self._take_over(json.loads(store.read_text(file)), job, feed)
            except (ValueError, KeyError, TypeError) as error:
                log.warning("an attempt cannot be continued and starts again", job=job, why=repr(error))

    def cut(self, scope: Scope, parts: Sequence[Windows]) -> None:
        """What is rebuilt, and in which chunks: decided once, whoever goes on."""
        self.scope, self.parts = scope, [*parts]
        self._save(None)

    def computed(self, files: dict[str, int]) -> None:
        """To be called when the batch result is there as these files."""
        self.files = files
        self._save(None)

    def done(self, part: Windows) -> bool:
        return part.to_json() in self._done

    def replacing(self, part: Windows, found: Outcome) -> None:
        """To be called before the commit."""
        self._save({"part": part.to_json(), "outcome": asdict(found)})

    def replaced(self, part: Windows, found: Outcome) -> None:
        """To be called after the commit."""
        self._done.append(part.to_json())
        self.outcome += found
        self.next_epoch += 1
        self._save(None)

    def _take_over(self, stored: dict[str, Any], job: str, feed: MaintainedVersion) -> None:
        replacing, outcome = stored["replacing"], _outcome(stored["outcome"])
        done, next_epoch = stored["done"], stored["next_epoch"]
        if replacing and _made(feed, job, next_epoch):
            done = [*done, replacing["part"]]
            outcome += _outcome(replacing["outcome"])
            next_epoch += 1
        pinned = stored["closed"]["pin"]
        if (
            stored["about"] == self._about
            and next_epoch == self.next_epoch
            and delta.commit(feed.path, pinned["delta_version"]) is not None
        ):
            pin = replace(self.closed.pin, **pinned)
            closed = replace(self.closed, **{**stored["closed"], "pin": pin})
            scope, parts = Scope.from_json(stored["scope"]), [*map(Windows.from_json, stored["parts"])]
            self.files = stored["files"]
            # all of it or nothing: what starts again has done nothing yet
            self.closed, self.scope, self.parts = closed, scope, parts
            self._done, self.outcome = done, outcome
        else:
            self.outcome = replace(outcome, rows_compared=0)

    def _save(self, replacing: dict[str, Any] | None) -> None:
        closed = asdict(self.closed)
        closed["pin"].pop("version")
        assert self.scope is not None  # `cut` comes first
        state = {
            "about": self._about,
            "scope": self.scope.to_json(),
            "files": self.files,
            "parts": [part.to_json() for part in self.parts],
            "closed": closed,
            "next_epoch": self.next_epoch,
            "done": self._done,
            "outcome": asdict(self.outcome),
            "replacing": replacing,
        }
        store.replace(self._file, json.dumps(state))


def _made(feed: MaintainedVersion, job: str, epoch: int) -> bool:
    """Whether the table's commit with that number may be this job's.

    After some hours its file is cleaned up, and with it who made it: a difference is reported
    twice rather than not at all.
    """
    if epoch >= batch_epoch(feed):
        return False
    metadata = delta.newest_metadata(feed.path, lambda metadata: metadata.get("epoch") == epoch)
    return metadata is None or (metadata["kind"] == "rebuild" and metadata["job"] == job)


def _outcome(stored: dict[str, Any]) -> Outcome:
    return Outcome(**{**stored, "differences": tuple(stored["differences"])})
