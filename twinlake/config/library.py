"""Where the library itself is, and where it keeps what it has fetched: the same for every project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from twinlake.base.version import VERSION

LIBRARY = Path(__file__).resolve().parents[1]
"""The package's folder: in a checkout, or where it was installed."""
TEMPLATE = LIBRARY / "templates" / "project"
"""What `twinlake new project` writes."""


def checkout_of(library: Path) -> Path | None:
    """The checkout that holds this package; None for an installed one, whatever project it was put into."""
    try:
        text = (library.parent / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return library.parent if '\nname = "twinlake"\n' in text else None


CHECKOUT = checkout_of(LIBRARY)
"""The folder of a checkout; None for an installed library."""
IMPORTABLE: Mapping[str, str] = {"PYTHONPATH": str(CHECKOUT)} if CHECKOUT else {}
"""What other processes of this Python need in their environment to import the library."""
FETCH_JARS = "run `make jars`" if CHECKOUT else "run `twinlake up`, which fetches them"
"""What to do where they are missing."""


def jars_folder(environ: Mapping[str, str]) -> Path:
    """`.jars` of a checkout; for an installed library a folder of the user's cache, one per version."""
    if CHECKOUT is not None:
        return (CHECKOUT / ".jars").resolve()  # the class archive knows its jars by one path
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (cache / "twinlake" / f"jars-{VERSION}").resolve()
