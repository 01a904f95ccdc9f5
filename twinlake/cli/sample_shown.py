"""What `twinlake diff --sample` says to a person: every figure with the sample that it is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from twinlake.cli.judged import Judged
from twinlake.cli.output import Words, say, show_rows
from twinlake.cli.release_steps import show_samples

BEFORE, AFTER = "before", "now"


def show(found: Judged) -> None:
    for one in found.compared:
        _show(one)
    for table, why in found.refused.items():
        say((table, "bold"), ": ", (f"what it shows is not known: {why}", "yellow"))
    for table in found.new:
        say((table, "bold"), f": {NEW}")
    for table in found.removed:
        say((table, "bold"), f": {REMOVED}")
    if not (found.compared or found.refused or found.new or found.removed):
        say(nothing(found))


NEW = "it is new, there is nothing to compare it with"
REMOVED = "its definition is gone"


def nothing(found: Judged) -> str:
    """Of tables that patterns met, and that all mean what they meant."""
    return f"no definition differs from {found.against}"


def against(one: Mapping[str, Any]) -> str:
    """The other side, for a person."""
    version, release = one["against"]["version"], one["against"]["release"]
    return f"commit {version}" if release is None else f"release {release} ({version})"


def size(one: Mapping[str, Any]) -> str:
    """How much the sample is: what is said of it is said of so much."""
    sample = one["sample"]
    if sample["by"] == "files":
        return f"{sample['records']:,} records of files"
    if sample["whole"]:
        return f"all {sample['records']:,} records"
    if sample["by"] == "keys":
        among = f"drawn in the newest {sample['records']:,} of {sample['of_records']:,} records"
        return f"all records of {sample['keys']:,} keys, {among}"
    return f"the newest {sample['records']:,} of {sample['of_records']:,} records"


def parts(one: Mapping[str, Any]) -> Iterator[str]:
    """Of each topic, where the sample lies, or the records that its keys were drawn among."""
    by = one["sample"]["by"]
    for name, topic in one["sample"]["topics"].items():
        if not topic["records"]:
            yield f"{name}: no records"
            continue
        first, last = topic["first_batch"], topic["last_batch"]
        batches = f"batch {first:,}, " if first == last else f"batch {first:,} to {last:,}, "
        records = f"{'keys of ' if by == 'keys' else ''}{topic['records']:,} records"
        where = "" if by == "files" else batches
        yield f"{name}: {records}, {where}{topic['begin']} to {topic['end']}"


def cost(one: Mapping[str, Any]) -> Iterator[str]:
    """What a build would cost, where a lake says it."""
    found = one["cost"]
    if found is None:
        return
    if found["builds"]:
        size = f"{found['records']:,} records, {found['bytes'] / 1e6:,.1f} MB of log"
        yield f"to build it: {size}, about {found['minutes_estimate']:g} min"
    else:
        yield "nothing has to be built for it"
    if not found["reaches_back"]:
        yield f"history does not reach back far enough: {found['history']}"


def _show(one: Mapping[str, Any]) -> None:
    if not one["changed"]:
        say((one["table"], "bold"), f": it means what {against(one)} means: {'; '.join(one['why'])}")
        return
    compared = one["comparison"]
    verdict: Words = ("equal", "green") if one["equal"] else "different"
    say((one["table"], "bold"), f" against {against(one)}, over {size(one)}: ", verdict)
    for line in (*parts(one), *one["why"]):
        say(f"    {line}")
    say(
        f"  in this sample {compared['common'] - compared['changed']:,} rows the same, "
        f"{compared['changed']:,} changed, {compared['only_blue']:,} only {BEFORE}, "
        f"{compared['only_green']:,} only {AFTER}"
    )
    for side, words in (("blue", BEFORE), ("green", AFTER)):
        if compared[f"columns_only_{side}"]:
            say(f"  columns only {words}: {', '.join(compared[f'columns_only_{side}'])}")
    if compared["blue_raises"]:
        raises = f"{BEFORE} it cannot be read, and counts as NULL where it raises"
        say((f"  {raises}: {compared['blue_raises']}", "yellow"))
    rows = [
        (column["name"], f"{column['changed']:,}", column["blue_total"] or "", column["green_total"] or "")
        for column in compared["columns"] if column["changed"]
    ]  # fmt: skip
    if rows:
        show_rows(("column", "rows changed", f"total {BEFORE}", f"total {AFTER}"), rows)
    show_samples(compared["samples"], (BEFORE, AFTER))
    for line in (*one["limits"], *cost(one)):
        say(f"  {line}")
