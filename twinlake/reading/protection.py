"""Protection: what keeps this process from the lake and from secrets, asked of the process itself."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twinlake.config.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Protection:
    """What the running process can do; each False is a layer of isolation that holds."""

    user: int
    has_capabilities: bool
    writes_lake: bool | None
    """None of a lake in a store, where the rights of its account decide."""
    sees_secrets: bool

    @classmethod
    def of_this_process(cls, settings: Settings) -> Protection:
        return cls(
            user=os.geteuid(),
            has_capabilities=_capabilities() != 0,
            writes_lake=os.access(settings.lake, os.W_OK) if isinstance(settings.lake, Path) else None,
            sees_secrets=os.access(settings.services_file, os.R_OK),
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _capabilities() -> int:
    """The effective ones, a bit each; of a system without /proc nothing is known, so all."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return -1
    (found,) = (line.split()[1] for line in lines if line.startswith("CapEff:"))
    return int(found, 16)
