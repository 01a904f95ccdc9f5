"""Records around changes of clocks, and what windows of local days show of them by definition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from tests.laws import oracle
from tests.laws.cuts import Shown
from tests.laws.histories import START, History, Record, generated
from tests.laws.tables import WINDOWED
from tests.oracle.local_days import DAY, begin, day_at, window_at
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.windows import Hopping, Tumbling

HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)
_TIMES = (-25 * HOUR, -HOUR, -TICK, timedelta(0), HOUR - TICK, HOUR, 23 * HOUR, 24.5 * HOUR, 25 * HOUR)
"""From the beginning of a day, for the nine times that generated records have."""


@dataclass(frozen=True)
class Place:
    """A zone, and days of it that are longer or shorter than others, or begin oddly."""

    zone: str
    days: tuple[date, ...]
    size: int = 1
    every: int | None = None

    @property
    def table(self) -> Aggregate:
        size = f"{self.size} days"
        window = (
            Hopping(on="at", size=size, every=f"{self.every} days", time_zone=self.zone)
            if self.every else Tumbling(on="at", size=size, time_zone=self.zone)
        )  # fmt: skip
        return replace(WINDOWED, name="local", window=window)

    def windows(self, at: datetime) -> list[tuple[datetime, datetime]]:
        """Of the hopping ones: those that begin on the days before, too, counted from 1970 on."""
        if self.every is None:
            return [window_at(self.zone, at, self.size)]
        days = [day_at(self.zone, at) - before * DAY for before in range(self.size)]
        begun = [day for day in days if (day - date(1970, 1, 1)).days % self.every == 0]
        return [(begin(self.zone, day), begin(self.zone, day + self.size * DAY)) for day in begun]

    @property
    def expected(self) -> Callable[[Iterable[Record]], Shown]:
        def shown(records: Iterable[Record]) -> Shown:
            held: dict[Any, list[Record]] = defaultdict(list)
            for record in records:
                if record.at is None or record.amount == oracle.FILTERED:
                    continue
                for window in self.windows(record.at):
                    held[record.key, *window].append(record)
            return {
                (key, start): {"window_end": end, **oracle.measures(of)}
                for (key, start, end), of in held.items()
            }

        return shown

    def histories(self, count: int) -> list[History]:
        """Each around one of the days; some around days further away, too."""
        found = []
        for number, history in enumerate(generated(count)):
            first = begin(self.zone, self.days[number % len(self.days)])

            def moved(at: datetime | None, first: datetime = first) -> datetime | None:
                return at and first + _TIMES[round((at - START) / timedelta(seconds=37)) + 4]

            records = tuple(replace(one, at=moved(one.at)) for one in history.records)
            found.append(replace(history, records=records))
        return found


PLACES: dict[str, Place] = {
    "25 and 23 hours": Place("Europe/Berlin", (date(2026, 10, 25), date(2026, 3, 29), date(2026, 7, 1))),
    "midnight does not exist, or twice": Place(
        "America/Sao_Paulo", (date(2018, 11, 4), date(2018, 2, 18), date(2019, 2, 17), date(2026, 1, 1))
    ),
    "midnight does not exist, in weeks": Place(
        "Asia/Beirut", (date(2026, 3, 29), date(2026, 10, 25), date(1972, 6, 22)), size=7
    ),
    "a minute of the day before its midnight": Place(
        "America/St_Johns", (date(2006, 10, 29), date(2006, 4, 2), date(1988, 4, 3))
    ),
    "before 1970, and from minutes to hours": Place(
        "Europe/Amsterdam", (date(1937, 7, 1), date(1940, 5, 16), date(1945, 9, 16), date(1835, 1, 1))
    ),
    "each day the last three": Place(
        "Europe/Berlin", (date(2026, 10, 25), date(2026, 3, 29), date(1893, 4, 1)), size=3, every=1
    ),
    "three days that begin every other day": Place(
        "Europe/Berlin", (date(2026, 10, 25), date(2026, 3, 29), date(2026, 10, 24)), size=3, every=2
    ),
    "half an hour, and the other half of the earth": Place(
        "Australia/Lord_Howe", (date(2026, 4, 5), date(2026, 10, 4)), size=2
    ),
}  # fmt: skip
