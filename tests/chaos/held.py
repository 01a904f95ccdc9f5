"""What the processes hold, looked at all the time: memory, threads, open files stay as they were."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from tests.chaos.world import World

EVERY_S = 10.0
PARTS = ("lake", "SQL server")
FLAT = {"memory MB": 1.3, "threads": 1.3, "open files": 1.5}
"""How much more the last third of a run may have, at most, than the first two."""
LEAST = 6
"""So often each part must have been looked at."""
Held = dict[str, float]


@dataclass(kw_only=True)
class Looks:
    world: World
    of: dict[str, list[Held]] = field(default_factory=lambda: {part: [] for part in PARTS})
    ending: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.ending.wait(EVERY_S):
            self.look()
            self.world.start_again()

    def look(self) -> None:
        found = self.world.processes()
        for part in PARTS:
            with suppress(psutil.NoSuchProcess):
                processes = [one for one in found.get(part, []) if one.name().startswith(("java", "python"))]
                if len(processes) > 1:  # up, with its JVM
                    self.of[part].append({
                        "memory MB": sum(one.memory_info().rss for one in processes) / 2**20,
                        "threads": sum(one.num_threads() for one in processes),
                        "open files": sum(one.num_fds() for one in processes),
                    })  # fmt: skip

    def most(self) -> dict[str, tuple[float, float]]:
        """By part and figure, the most in the first two thirds, and in the last."""
        found = {}
        for part, held in self.of.items():
            cut = len(held) * 2 // 3
            for name in FLAT:
                early, late = ([one[name] for one in some] for some in (held[:cut], held[cut:]))
                found[f"{part}: {name}"] = (max(early, default=0), max(late, default=0))
        return found

    def risen(self) -> list[str]:
        """What rose, and what was not looked at often enough to tell."""
        looks = {part: len(held) for part, held in self.of.items()}
        few = [
            f"the {part} was looked at {times} times only" for part, times in looks.items() if times < LEAST
        ]
        return few + [
            f"{name} rose from {early:.0f} to {late:.0f}"
            for name, (early, late) in self.most().items()
            if early and late > early * FLAT[name.split(": ")[1]]
        ]
