"""What the gallery's tables must show: one module per example, and the only list of them.

Each has `tables(valid, watermarks)`: by topic the valid records, and the watermark for tables that are about
time, to every table's rows by key; in plain Python, the obvious way, sharing no code with the platform.
"""

from __future__ import annotations

from types import ModuleType

from tests.oracle.gallery import (
    cards,
    clicks,
    devices,
    inventory,
    parcels,
    shop,
    trades,
    trucks,
    users,
    words,
)

EXAMPLES: dict[str, ModuleType] = {
    "trades": trades,
    "words": words,
    "cards": cards,
    "users": users,
    "trucks": trucks,
    "inventory": inventory,
    "clicks": clicks,
    "parcels": parcels,
    "devices": devices,
    "shop": shop,
}
