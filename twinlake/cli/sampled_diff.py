"""`twinlake diff --sample`: what changed definitions would show otherwise, judged on a sample of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.cli.job_options import Asked
from twinlake.cli.judged import Judged, Wanted
from twinlake.cli.options import refuse_beside
from twinlake.cli.output import print_json, tell
from twinlake.config.settings import Settings

TEXT, MARKDOWN = "text", "markdown"
FORMATS = (TEXT, MARKDOWN)

SAMPLE = Annotated[
    str | None,
    typer.Option(
        "--sample", metavar="A,B",
        help="judge these tables' definitions, as they are written now, on a sample of records; nothing is "
        "built. A pattern like '*' means every table that it meets and whose definition differs",
    ),
]  # fmt: skip
RECORDS_FROM = Annotated[
    list[str] | None,
    typer.Option(
        "--records-from", metavar="FILE",
        help="with --sample, where no lake runs: records of the topic that the file is named after, a JSON "
        "object a line; or TOPIC=FILE, or a folder of such files. More than once for several",
    ),
]  # fmt: skip
AGAINST = Annotated[
    str | None,
    typer.Option(
        metavar="COMMIT",
        help="with --records-from, what git calls the commit to compare with; unless given, the one at which "
        "this branch has left the remote's main branch",
    ),
]  # fmt: skip
FORMAT = Annotated[
    str,
    typer.Option(
        "--format", metavar="|".join(FORMATS),
        help="of --sample; markdown is a comment for a pull request, with the tables' failing unit tests",
    ),
]  # fmt: skip


def run(
    settings: Settings, tables: str, sampled: Asked, key: str | None, records_from: Sequence[str] | None,
    against: str | None, form: str, as_json: bool,
) -> None:  # fmt: skip
    """Exit code 1 where a table shows something else; 3 where that is not known of one."""
    from twinlake.cli import sampled_files, sampled_lake

    wanted = Wanted.of(tables)
    if form not in FORMATS:
        raise UsageError(f"--format {form} is no format", f"there are {', '.join(FORMATS)}", "choose one")
    if as_json:
        refuse_beside("--json", {"--format": form != TEXT})
    if records_from:
        lakes = {f"--{name}": True for name in sampled} | {"--key": key is not None}
        refuse_beside("--records-from", lakes)
        found = sampled_files.judged(settings, wanted, records_from, against)
    elif against is not None:
        why = "a lake's live version is what a change is compared with"
        raise UsageError("--against needs --records-from", why, "leave it out, or add --records-from FILE")
    else:
        found = sampled_lake.judged(settings, wanted, sampled, key)
    _show(settings, found, form, as_json, is_lake=not records_from)
    if code := found.exit_code:
        raise typer.Exit(code)


def refuse_without_sample(given: Mapping[str, Any]) -> None:
    """UsageError for an option that says something of a sample, where none is asked for."""
    for option, value in given.items():
        if value not in (None, [], TEXT):
            why = "it says something of a sample"
            raise UsageError(f"{option} needs --sample", why, "add --sample TABLE, or leave it out")


def _show(settings: Settings, found: Judged, form: str, as_json: bool, *, is_lake: bool) -> None:
    if as_json:
        print_json(found.to_json())
    elif form == MARKDOWN:
        from twinlake.cli.sample_comment import comment
        from twinlake.cli.sample_tests import tested

        print(comment(found, tested(settings, [one["table"] for one in found.compared])), end="")
    else:
        from twinlake.cli.sample_shown import show

        show(found)
        if is_lake and found.compared:
            tell("next: twinlake plan, then twinlake build and twinlake diff, which count all of history")
