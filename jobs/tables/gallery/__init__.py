"""The gallery: examples that books on stream processing teach with. The only list of them."""

from __future__ import annotations

from types import ModuleType

from jobs.tables.gallery import cards, clicks, devices, inventory, parcels, shop, trades, trucks, users, words

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
"""By name; each has `TABLES`, every table after those that it reads."""
