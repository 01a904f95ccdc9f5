"""Devices that say ten times a second how warm they are: now, and per minute, in one unit."""

from jobs.kinds.kind import Kind
from jobs.tables.gallery.devices import device_minutes, device_now

TABLES: tuple[Kind, ...] = (device_now.TABLE, device_minutes.TABLE)
