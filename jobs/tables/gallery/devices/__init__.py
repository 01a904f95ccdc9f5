"""Devices that say ten times a second how warm they are: now, and per minute, in one unit."""

from jobs.tables.gallery.devices import device_minutes, device_now
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (device_now.TABLE, device_minutes.TABLE)
