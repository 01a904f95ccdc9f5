"""What the lake server takes where a request leaves it open; whoever offers the choice tells it from here."""

from __future__ import annotations

KEPT_RELEASES = 3
"""So many of the newest releases can be gone back to."""
