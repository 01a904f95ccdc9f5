"""Owns the sequences of the gallery's shop: two tables of databases, sent by connectors as Debezium's do.

A connector begins with a snapshot. Now and then it has lost its place: then it knows nothing of the changes
since, and takes a snapshot again. Its tombstones are switched off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

CUSTOMERS, ORDERS = 40, 150
NAMES = ("Anna", "Ben", "Cleo", "Dora", "Emil", "Färber", "Goran", "Hanna")
CITIES = ("Bonn", "Kraków", "Lyon", "Málaga", None)
LOST, INCREMENTAL, DELETED = 0.01, 0.02, 0.25
"""Shares: of changes before which the connector loses its place or reads some rows again; of deletes."""
Row = Mapping[str, Any]


class _Table:
    """A table, and what its connector has still to tell of it."""

    key = "id"

    def __init__(self, random: Random, most: int) -> None:
        self.random = random
        self._most = most
        self._rows: dict[int, Row] = {}
        self._position = 0
        self._pending: deque[dict[str, Any]] = deque()
        for _ in range(most):
            self._change()
        self._snapshot()

    def row(self, number: int) -> Row:
        """A new state of one row."""
        raise NotImplementedError

    def source(self, position: int) -> Row:
        """Where in the database's log a change was."""
        raise NotImplementedError

    def before(self, row: Row, op: str) -> Row | None:
        """What the database logs of the row as it was."""
        raise NotImplementedError

    def event(self, at: datetime) -> dict[str, Any]:
        if not self._pending:
            chance = self.random.random()
            if chance < LOST:
                for _ in range(self.random.randrange(5, 40)):
                    self._change()
                self._snapshot()
            elif chance < LOST + INCREMENTAL:
                self._position += 1  # the signal for it is a row, too
                self._read(self.random.sample(sorted(self._rows), len(self._rows) // 4), "incremental")
        if not self._pending:
            self._pending.append(self._change())
        envelope = self._pending.popleft()
        ms = round(at.timestamp() * 1000)
        return {**envelope, "source": {**envelope["source"], "ts_ms": ms}, "ts_ms": ms + 40}

    def _change(self) -> dict[str, Any]:
        self._position += 1
        number = self.random.randrange(1, self._most + 1)
        was = self._rows.get(number)
        if was is not None and self.random.random() < DELETED:
            del self._rows[number]
            return self._envelope("d", "false", self.before(was, "d"), None)
        self._rows[number] = self.row(number)
        if was is None:
            return self._envelope("c", "false", None, self._rows[number])
        return self._envelope("u", "false", self.before(was, "u"), self._rows[number])

    def _snapshot(self) -> None:
        self._position += 1
        self._read(sorted(self._rows), "true")
        self._pending[0]["source"]["snapshot"] = "first"
        self._pending[-1]["source"]["snapshot"] = "last"

    def _read(self, numbers: list[int], snapshot: str) -> None:
        self._pending += [self._envelope("r", snapshot, None, self._rows[number]) for number in numbers]

    def _envelope(self, op: str, snapshot: str, before: Row | None, after: Row | None) -> dict[str, Any]:
        source = {**self.source(self._position), "snapshot": snapshot}
        return {"before": before, "after": after, "source": source, "op": op}


class Customers(_Table):
    """In PostgreSQL, which by default logs of an old row only the key, and that only where it is deleted."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, CUSTOMERS)

    def row(self, number: int) -> Row:
        return {"id": number, "name": self.random.choice(NAMES), "city": self.random.choice(CITIES)}

    def source(self, position: int) -> Row:
        at = {"lsn": 24_023_128 + 56 * position, "txId": 555 + position}
        return {"connector": "postgresql", "db": "shop", "schema": "public", "table": "customers", **at}

    def before(self, row: Row, op: str) -> Row | None:
        return {"id": row["id"], "name": None, "city": None} if op == "d" else None


class Orders(_Table):
    """In MySQL, which logs whole rows."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, ORDERS)

    def row(self, number: int) -> Row:
        amount = Decimal(self.random.randrange(100, 100_000)).scaleb(-2)
        return {"id": number, "customer_id": self.random.randrange(1, CUSTOMERS + 5), "amount": amount}

    def source(self, position: int) -> Row:
        return {
            "version": "3.0.0.Final", "connector": "mysql", "name": "shop", "db": "store",
            "table": "orders", "server_id": 223_344, "file": f"binlog.{position // 5_000:06}",
            "pos": 4 + 320 * (position % 5_000), "row": 0,
        }  # fmt: skip

    def before(self, row: Row, op: str) -> Row | None:
        return row


SOURCES = stories({"shop_customers": Customers, "shop_orders": Orders})
