"""`make demo`: tells the story, prints the summary, leaves the services up; exit 1 if anything differs."""

from __future__ import annotations

import os
import signal
import sys

from rich.console import Console
from rich.markup import escape

from tests.demo.story import Story
from tests.demo.summary import DemoError, Summary
from tests.project import PROJECT
from twinlake.base.errors import TwinlakeError
from twinlake.config.sections import WITNESS_REQUIRED
from twinlake.config.settings import Settings
from twinlake.config.settings_file import overrides

HOME = PROJECT / ".twinlake-demo"
"""The demo begins with nothing every time, so no state but its own may be here."""


def main() -> int:
    for name in overrides(os.environ):  # it makes topics anew and kills brokers: only its own
        del os.environ[name]
    os.environ["TWINLAKE_HOME"] = str(HOME)  # for every command that it runs
    os.environ["TWINLAKE_PROOF_WITNESS"] = WITNESS_REQUIRED
    settings = Settings.of(os.environ)
    if given := settings.values.given:
        sys.exit(f"the demo makes everything anew, and would not spare the {given[0]} that "
                 f"{settings.file} names: take it out there")  # fmt: skip
    console = Console(highlight=False, emoji=False)
    console.print(
        f"the demo's state is in {HOME}, and made anew by every demo; no other state is touched",
        soft_wrap=True,
    )
    summary = Summary(file=settings.home / "demo" / "summary.json", console=console)
    story = Story(settings=settings, summary=summary)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started here is ended here
    try:
        story.tell()
    except (DemoError, TwinlakeError) as error:
        console.print(f"\n[bold red]The demo stopped:[/] {escape(str(error))}", soft_wrap=True)
    except KeyboardInterrupt:
        console.print("\nstopped by Ctrl-C; the services are still up, `make down` ends them")
        return 130
    finally:
        story.close()
    _finish(story)
    return 0 if summary.passed else 1


def _finish(story: Story) -> None:
    summary, console = story.summary, story.summary.console
    try:
        services = story.services
    except TwinlakeError:
        summary.save()
        return
    summary.where |= {
        "airflow": services.airflow_url,
        "jdbc": services.jdbc_url,
        "query": f'.venv/bin/twinlake --home {HOME.name} query "SELECT * FROM serve.orders LIMIT 5"',
        "summary": str(summary.file),
        "end": "make down",
    }
    summary.save()
    held = sum(one["holds"] for one in summary.checks)
    colour, word = ("green", "passed") if summary.passed else ("red", "FAILED")
    checks = f"{held} of {len(summary.checks)} checks"
    console.print(f"\n[bold {colour}]The demo {word}[/]: {checks}, {summary.seconds} s")
    for name, place in summary.where.items():
        console.print(f"   {name:<8} {escape(place)}", soft_wrap=True)
    for door, user, password in (
        ("airflow", services.airflow_user, services.airflow_password),
        ("jdbc and report", *services.reader),
    ):
        console.print(f"   login    {user} / {escape(password)}  ({door})", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
