"""The running server's self-check: asks the invariants before it commits, and stops what breaks one.

A break is an error of this code or of the machine, never of the data: nothing of it is committed.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlake.base.errors import StalledVersionError, StoppedTopicError
from twinlake.lake.invariants import Broken, LogState, VersionState, log_broken, version_broken


def refuse_broken_log(old: LogState, new: LogState) -> None:
    """StoppedTopicError where the batch that makes `new` of `old` would break an invariant."""
    if broken := log_broken(old, new):
        raise StoppedTopicError(
            f"batch {new.batch} of topic {new.topic} was not committed: it would break {', '.join(broken)}",
            _named(broken),
            "the log is as it was. Start the lake server again (`twinlake down`, `twinlake up`): it reads "
            "the log's end and the records again. If it stops here again, report it with these sentences",
            _facts(broken),
        )


def refuse_broken_version(old: VersionState, new: VersionState) -> None:
    """StalledVersionError where the step that makes `new` of `old` would break an invariant."""
    if broken := version_broken(old, new):
        raise StalledVersionError(
            f"step {new.step} of {new.name} was not committed: it would break {', '.join(broken)}",
            _named(broken),
            "the version is as it was, and is read from its table and tried again by itself. If it stays "
            "stalled, build it again: `twinlake plan`, `twinlake build`, `twinlake promote`",
            _facts(broken),
        )


def _named(broken: Mapping[str, Broken]) -> str:
    return "; ".join(sentence for found in broken.values() for sentence in found)


def _facts(broken: Mapping[str, Broken]) -> dict[str, str]:
    return {"invariants": ", ".join(broken)}
