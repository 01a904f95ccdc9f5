"""The version of this code, and with which others it understands itself."""

from __future__ import annotations

VERSION = "0.1.0"
"""The one place of it: `pyproject.toml` reads it here.

The first two numbers change when clients and lake server no longer understand each other.
"""


def is_compatible(other: str) -> bool:
    """Whether a client and a lake server of these versions understand each other."""
    return other.split(".")[:2] == VERSION.split(".")[:2]
