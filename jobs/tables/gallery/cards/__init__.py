"""Payments by card: where each was used in an hour, its usual amounts, and hours that look like fraud."""

from jobs.tables.gallery.cards import card_amounts, card_hours, suspicious_hours
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (card_hours.TABLE, card_amounts.TABLE, suspicious_hours.TABLE)
