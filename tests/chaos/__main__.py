"""`python -m tests.chaos --minutes 15 --seed 7`: exit code 1 where something does not hold."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.chaos.plan import QUARTER


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Who is told to end (TERM) leaves no process and no disk behind."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> int:
    from tests.chaos.run import run

    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=QUARTER)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    given = parser.parse_args()
    with ended_in_order(), tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as folder:
        journal = run(Path(folder), given.minutes, given.seed)
    for line in journal.wrong:
        print(f"WRONG: {line}")
    return 1 if journal.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
