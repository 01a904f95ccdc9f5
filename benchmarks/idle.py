"""`make bench-idle`: how long `up` and `check` take, and what every part costs when nobody asks for anything.

Everything runs in `<state folder>/bench/idle`, beside the user's lake; the figures go to `idle.json` there.
CPU is of whole process trees, memory is their proportional share (PSS): pages that two share count once.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Container
from contextlib import suppress

import psutil

from benchmarks.meter import cpu_seconds, tree
from benchmarks.platform import command, refuse_failure, twinlake
from benchmarks.small import FIRST_QUERY_S, first_query
from tests.project import OURS
from twinlake.base.files import replace_file
from twinlake.cli.output import load_settings
from twinlake.config.settings import Settings
from twinlake.services.all import all_parts
from twinlake.services.supervise import record

RECORDS = 20_000
SUPERVISOR = "supervisor"
_SERVICE = re.compile(r"ok (\w+)")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.idle", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--settle", type=float, default=120.0, help="seconds of peace before it is measured")
    parser.add_argument("--seconds", type=float, default=180.0, help="how long the idle parts are measured")
    parser.add_argument("--gallery", action="store_true", help="with topics and tables of all its examples")
    asked = parser.parse_args()
    folder = load_settings().home / "bench" / "idle"
    settings = Settings(home=folder / "home", in_project=OURS)
    if settings.home.exists():
        twinlake(settings, "down")
        shutil.rmtree(settings.home)
    for example in settings.project.example_names() if asked.gallery else ():
        twinlake(settings, "gallery", "add", example)
    try:
        result = {f"first_{name}": seconds for name, seconds in up(settings).items()}
        twinlake(settings, "produce", "orders", "--count", str(RECORDS))
        twinlake(settings, "down")
        result |= up(settings)
        result["first_query_s"] = round(first_query(settings.services()), 1)
        print(f"{result['first_query_s']:6.1f} s  first query (target: {FIRST_QUERY_S:g} s)", flush=True)
        print(f"now {asked.settle:.0f} s of peace", flush=True)
        time.sleep(asked.settle)
        parts = costs(settings, asked.seconds)
        began = time.monotonic()
        twinlake(settings, "check")
        result["check_s"] = round(time.monotonic() - began, 1)
        print(f"check: {result['check_s']} s", flush=True)
    finally:
        twinlake(settings, "down")
    parts["all"] = {
        key: round(sum(part[key] for part in parts.values()), 3) for key in ("cores", "mib", "threads")
    }
    for name, part in parts.items():
        print(f"{name:<20} {part['cores']:6.3f} cores {part['mib']:8,.0f} MiB {part['threads']:6} threads")
    replace_file(folder / "idle.json", json.dumps({**result, "parts": parts}, indent=2) + "\n")
    print(f"written to {folder / 'idle.json'}")
    return 0


def up(settings: Settings) -> dict[str, float]:
    """Start everything: seconds until the data path works (the SQL server is its end), and until all do."""
    began, reached = time.monotonic(), {}
    with subprocess.Popen(**command(settings, "up"), stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if found := _SERVICE.match(line):
                reached[found[1]] = round(time.monotonic() - began, 1)
                print(f"{reached[found[1]]:6.1f} s  {found[1]}", flush=True)
    refuse_failure(run.returncode, "up")
    return {"data_path_s": max(reached["lake"], reached["sql"]), "up_s": round(time.monotonic() - began, 1)}


def costs(settings: Settings, seconds: float) -> dict[str, dict[str, float]]:
    """Per part, and for the supervisor that watches them: cores, MiB and threads."""
    roots = _roots(settings)
    before = {name: cpu_seconds(processes_of(name, pid)) for name, pid in roots.items()}
    time.sleep(seconds)
    return {
        name: {
            "cores": round((cpu_seconds(processes_of(name, pid)) - before[name]) / seconds, 3),
            "mib": round(mib(processes_of(name, pid))),
            "threads": threads(processes_of(name, pid)),
        }
        for name, pid in roots.items()
    }


def memory_gb(settings: Settings, without: Container[str]) -> float:
    """Of all parts that run but these, and of their supervisor."""
    parts = _roots(settings).items()
    return sum(mib(processes_of(name, pid)) for name, pid in parts if name not in without) / 1024


def _roots(settings: Settings) -> dict[str, int]:
    """By part the pid of the outermost of its processes."""
    return {
        name: identity.pid
        for name in (*(part.name for part in all_parts()), SUPERVISOR)
        if (identity := record.of(settings, name).identity) and identity.alive
    }


def mib(processes: list[psutil.Process]) -> float:
    total = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            total += process.memory_full_info().pss
    return total / 2**20


def threads(processes: list[psutil.Process]) -> int:
    total = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            total += process.num_threads()
    return total


def processes_of(name: str, pid: int) -> list[psutil.Process]:
    """The processes of a part; the parts are the supervisor's children, and not counted as its own."""
    root = psutil.Process(pid)
    return [root] if name == SUPERVISOR else tree(root)


if __name__ == "__main__":
    sys.exit(main())
