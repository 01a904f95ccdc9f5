"""Payments by card: their sequence and contract; tables come with measures that keep multisets."""

from jobs.kinds.kind import Kind

TABLES: tuple[Kind, ...] = ()
