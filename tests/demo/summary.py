"""What the demo found: steps with their times and figures, checks with their outcome, kept in one file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from twinlake.base.files import replace_file


class DemoError(Exception):
    """The demo cannot go on: what happened, in words for the person who watches."""


@dataclass(kw_only=True)
class Summary:
    """Written to `file` after every step, so that a demo that was stopped leaves what it measured."""

    file: Path
    console: Console
    steps: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    where: dict[str, str] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _at: str = field(default_factory=lambda: _now())

    @contextmanager
    def step(self, title: str) -> Iterator[dict[str, Any]]:
        """One numbered step; what is put into the yielded dict is printed and kept."""
        number = len(self.steps) + 1
        figures: dict[str, Any] = {}
        entry: dict[str, Any] = {"step": number, "title": title, "figures": figures}
        self.steps.append(entry)
        self.console.print(f"\n[bold]{number}. {escape(title)}[/]", soft_wrap=True)
        began = time.monotonic()
        try:
            yield figures
        except Exception as error:
            entry["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            entry["seconds"] = round(time.monotonic() - began, 1)
            for name, value in figures.items():
                self.say(f"{name.replace('_', ' ')}: [bold]{escape(_shown(value))}[/]")
            self.say(f"[dim]{entry['seconds']} s[/]")
            self.save()

    def say(self, markup: str) -> None:
        self.console.print(f"   {markup}", soft_wrap=True)

    def check(self, name: str, holds: bool, detail: str = "") -> None:
        """Something that must hold; the demo ends with exit code 1 if any did not."""
        self.checks.append({"name": name, "holds": holds, "detail": detail})
        mark = "[green]ok[/]" if holds else "[bold red]FAILED[/]"
        self.say(f"{mark} {escape(name)}{': ' + escape(detail) if detail else ''}")

    @property
    def passed(self) -> bool:
        """Every check held and every step ended well."""
        return all(one["holds"] for one in self.checks) and not any("error" in one for one in self.steps)

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._began, 1)

    def save(self) -> None:
        found = {
            "passed": self.passed,
            "began_at": self._at,
            "saved_at": _now(),
            "seconds": self.seconds,
            "steps": self.steps,
            "checks": self.checks,
            "where": self.where,
        }
        replace_file(self.file, json.dumps(found, indent=2, ensure_ascii=False, default=str))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
    return str(value)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
