"""The child: reads a question as JSON from stdin, writes the answer as JSON to stdout.

`python -m twinlake.witness`, started by `witness/child.py`. It bounds itself before it reads a file.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from twinlake.witness.evaluate import evaluate
from twinlake.witness.ingest.evaluate import sampled
from twinlake.witness.ingest.question import TopicQuestion
from twinlake.witness.question import Limits, Question

LOW = 10
"""A tenth of a core that others want whole: with less, a release on a busy machine waits for the witness."""
_BESIDE_MB = 2_048
"""Address space beside what DuckDB may allocate: Python, code, stacks, and what its allocator keeps."""
_PARENT_DEATH_SIGNAL = 1
_LATER_S = 30
"""The asker ends a child in time; one that nobody ends stops by itself so much later."""


def main() -> None:
    asked = json.load(sys.stdin)
    limits = Limits.from_json(asked["limits"])
    bound(limits)
    json.dump(_answer(asked, limits), sys.stdout)


def _answer(asked: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    if "records" in asked:
        return sampled(TopicQuestion.from_json(asked["records"]), limits).to_json()
    return evaluate(Question.from_json(asked["question"]), limits).to_json()


def bound(limits: Limits) -> None:
    """A low priority; hard ends of memory and time, for what DuckDB does not bound; no byte into any file,
    beside DuckDB's own locks; the end of its asker."""
    os.nice(LOW)
    with suppress(OSError, AttributeError):  # Linux alone has it; elsewhere the time ends it
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    space = (limits.memory_mb + _BESIDE_MB) * 1_048_576
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # its answer goes into a pipe
    seconds = int(limits.seconds) + _LATER_S
    cpu = seconds * max(limits.threads, 1)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + _LATER_S))
    signal.alarm(seconds)


if __name__ == "__main__":
    main()
