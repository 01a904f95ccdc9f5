"""Three parts that cost nothing and a supervisor for them: run as a module, with `--home H`."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from twinlake.base.errors import TwinlakeError, UnreachableError
from twinlake.services.part import Command, Context, Part
from twinlake.services.supervise import supervisor


def _sleep(context: Context) -> Command:
    return Command(arguments=(sys.executable, "-c", "import time; time.sleep(300)"))


def _refuse(context: Context) -> None:
    if not (context.settings.home / "allowed").exists():
        raise UnreachableError("the second part may not start", "nobody allowed it", "allow it")


def parts(given: Collection[str] = ()) -> tuple[Part, ...]:
    return (
        Part(
            name="first", service="first", command=_sleep, probe=lambda context: "here",
            note=lambda context: f"sleeps in {context.folders.run.name}",
            error=lambda context: TwinlakeError("it limps", "it has a stone in its shoe", "take it out"),
        ),
        Part(name="second", service="second", needs=("first",), prepare=_refuse, command=_sleep),
        Part(name="third", service="third", after=("second",), command=_sleep),
    )  # fmt: skip


if __name__ == "__main__":
    Path(sys.argv[sys.argv.index("--home") + 1]).mkdir(exist_ok=True)
    supervisor.main(parts)
