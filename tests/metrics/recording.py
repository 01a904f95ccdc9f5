"""A record of what a Prometheus would have scraped of a run, which its own tool puts the alert rules to."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.metrics.scraping import scrape
from tests.metrics.test_alerts import RULES

STEP_S = 5
"""Between two scrapes, and two evaluations of the rules."""
MINUTE_S = 60
Key = tuple[str, frozenset[tuple[str, str]]]
Moment = Mapping[Key, float]
"""The samples of one scrape of all targets, points in time since the record began, as promtool's clock has
it; of a target that did not answer `up` alone, which is 0."""
IsTrue = Callable[[Sequence[Moment], int], bool]
"""Whether what an alert is about is so at that moment of the record."""


@dataclass
class Recorder:
    """Scrapes all targets each five seconds, from `start` to `stop`, as Prometheus does."""

    targets: Mapping[str, str]
    """Addresses by what is called the instance."""
    login: tuple[str, str]
    moments: list[Moment] = field(default_factory=list)
    began: float = field(default_factory=time.time)
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        if self._thread:
            self._thread.join(60)

    def _run(self) -> None:
        begin = time.monotonic()
        while not self._ending.is_set():
            found: dict[Key, float] = {}
            for instance, url in self.targets.items():
                found.update(self._scraped(instance, url))
            # a scrape that took longer than its turn is what was known in the turns that it took
            turn = int((time.monotonic() - begin) / STEP_S)
            self.moments.extend([found] * max(1, turn + 1 - len(self.moments)))
            self._ending.wait(max(0.1, len(self.moments) * STEP_S - (time.monotonic() - begin)))

    def _scraped(self, instance: str, url: str) -> dict[Key, float]:
        labels = {("instance", instance), ("job", "twinlake")}
        up = ("up", frozenset(labels))
        try:
            found = scrape(url, self.login).samples
        except httpx.HTTPError:
            return {up: 0.0}
        known = {
            (name, of | labels): value - (self.began if name.endswith("_timestamp_seconds") else 0.0)
            for (name, of), value in found.items()
        }
        return known | {up: 1.0}


def rules_with(file: Path, bounds: Mapping[str, str]) -> Path:
    """The rules with other bounds than the usual, as their head says that one may; each was there once."""
    text = RULES.read_text()
    for usual, other in bounds.items():
        assert text.count(usual) == 1, usual
        text = text.replace(usual, other)
    file.write_text(text)
    return file


def series(moments: Sequence[Moment], rules: Path) -> list[dict[str, str]]:
    """Those of the record that rules name, as promtool reads them; what ends is marked as stale."""
    names = {"up", *re.findall(r"\btwinlake_\w+", rules.read_text())}
    keys = dict.fromkeys(key for moment in moments for key in moment if key[0] in names)
    return [
        {"series": _named(key), "values": " ".join(_values([moment.get(key) for moment in moments]))}
        for key in keys
    ]


def _named(key: Key) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in sorted(key[1]))
    return f"{key[0]}{{{labels}}}"


def _values(known: Iterable[float | None]) -> Iterable[str]:
    before: float | None = None
    for value in known:
        yield f"{value:.17g}" if value is not None else "_" if before is None else "stale"
        before = value


@dataclass(frozen=True, kw_only=True)
class Fires:
    """From the first moment on at which it has been so for that long, which the record tells by itself."""

    alert: str
    is_true: IsTrue
    for_s: int = 0

    def at(self, moments: Sequence[Moment]) -> int:
        """Seconds since the beginning; AssertionError where the run did not make it happen."""
        held = 0
        for number in range(len(moments)):
            held = held + 1 if self.is_true(moments, number) else 0
            if held and (held - 1) * STEP_S >= self.for_s:
                return number * STEP_S
        raise AssertionError(f"{self.alert} never became true for {self.for_s} s in {len(moments)} scrapes")

    def is_in(self, moments: Sequence[Moment]) -> bool:
        """Whether the run has made it happen yet."""
        with suppress(AssertionError):
            self.at(moments)
            return True
        return False


def check(
    moments: Sequence[Moment],
    rules: Path,
    fire: Iterable[Fires],
    never: Iterable[str],
    folder: Path,
    over: Iterable[str] = (),
) -> str:
    """What promtool says, nothing where it is content: each fires at its time and not before, the others
    never; those that are `over` fire no more when the record ends."""
    whole = len(moments) * STEP_S
    asked: list[dict[str, Any]] = []
    for one in fire:
        at = one.at(moments)
        if at:
            asked.append(_asked(one.alert, at - STEP_S, 0))
        asked.append(_asked(one.alert, min(at + 2 * STEP_S, whole), 1))
    asked += [_asked(alert, whole, 0) for alert in never]
    asked += [
        {"expr": _firing(alert), "eval_time": f"{whole - STEP_S}s", "exp_samples": []} for alert in over
    ]
    file = folder / "recorded.test.yml"
    file.write_text(yaml.safe_dump({
        "rule_files": [str(rules)], "evaluation_interval": f"{STEP_S}s",
        "tests": [{"interval": f"{STEP_S}s", "name": "recorded", "input_series": series(moments, rules),
                   "promql_expr_test": asked}],
    }))  # fmt: skip
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _asked(alert: str, at: int, fired: int) -> dict[str, Any]:
    """Whether it has fired by then."""
    expr = f"count(count_over_time({_firing(alert)}[{at + 1}s]) > 0) > bool 0"
    samples = [{"labels": "{}", "value": 1}] if fired else []
    return {"expr": expr, "eval_time": f"{at}s", "exp_samples": samples}


def _firing(alert: str) -> str:
    return f'ALERTS{{alertname="{alert}",alertstate="firing"}}'


# -- what an alert is about, told by the samples alone


def any_of(name: str, holds: Callable[[float], bool], **labels: str) -> IsTrue:
    """Whether one of the series holds."""

    def is_true(moments: Sequence[Moment], number: int) -> bool:
        return any(
            holds(value)
            for (found, of), value in moments[number].items()
            if found == name and of >= labels.items()
        )

    return is_true


def older(name: str, seconds: float) -> IsTrue:
    """Whether one of the points in time is so long ago."""

    def is_true(moments: Sequence[Moment], number: int) -> bool:
        return any_of(name, lambda at: number * STEP_S - at > seconds)(moments, number)

    return is_true


def grown(name: str, least: float, **labels: str) -> IsTrue:
    """Whether one of the series has grown by so much since the record began."""

    def is_true(moments: Sequence[Moment], number: int) -> bool:
        first: dict[Key, float] = {}
        for moment in moments[: number + 1]:
            for key, value in moment.items():
                if key[0] == name and key[1] >= labels.items():
                    first.setdefault(key, value)
        return any(moments[number].get(key, value) - value >= least for key, value in first.items())

    return is_true


def still(name: str, moments_long: int) -> IsTrue:
    """Whether one of the series has had the same value in so many scrapes."""

    def is_true(moments: Sequence[Moment], number: int) -> bool:
        last = moments[max(0, number - moments_long + 1) : number + 1]
        return any(
            key[0] == name and len({one[key] for one in last if key in one}) == 1 for key in moments[number]
        )

    return is_true


def both(*of: IsTrue) -> IsTrue:
    """Whether all of them are so at the same moment."""
    return lambda moments, number: all(one(moments, number) for one in of)
