"""The lake server over a project folder of its own, whose schemas and contracts a test may edit."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from twinlake.config.settings import Settings
from twinlake.server import __main__ as server

if __name__ == "__main__":
    project, *rest = sys.argv[1:]
    server.Settings = partial(Settings, project=Path(project))  # type: ignore[attr-defined, misc]
    sys.exit(server.main(rest))
