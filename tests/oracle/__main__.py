"""Command line: `python -m tests.oracle --services FILE`; exit 1 if anything differs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.oracle.check import TABLES, check
from tests.oracle.judge import Registry
from tests.oracle.shown import SqlDoor
from tests.oracle.topic import client_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument(
        "--services", type=Path, required=True, help="services.json: addresses and the password"
    )
    parser.add_argument("--topic", default="orders")
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--ends", help='pinned end offsets as JSON, like {"0": 120, "1": 99}')
    parser.add_argument("--without-cancelled", action="store_true", help="sales leave out cancelled orders")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    ends = None if asked.ends is None else {int(key): int(end) for key, end in json.loads(asked.ends).items()}
    services = json.loads(asked.services.read_text())
    found = check(
        kafka=client_of(services),
        registry_url=Registry.of(services),
        door=SqlDoor(services["sql_url"], services["sql_user"], services["sql_password"]),
        topic=asked.topic,
        epoch=asked.epoch,
        ends=ends,
        without_cancelled=asked.without_cancelled,
        only=tuple(asked.only),
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    if asked.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for name, one in found["tables"].items():
            print(f"{name}: {'equal' if one['equal'] else 'DIFFERENT'} ({one['rows']:,} rows)")
            for example in one["examples"]:
                print(f"  {example}")
    return 0 if found["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
