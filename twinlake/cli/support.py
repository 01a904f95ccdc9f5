"""`twinlake support`: one file for whoever helps, without a secret in it."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any

import typer

from twinlake.base.as_json import to_json
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.files import SECRET, raising_disk_full
from twinlake.base.masking import MASK, Masker
from twinlake.base.times import format_moment, utc_now
from twinlake.cli.options import whole
from twinlake.cli.output import load_settings, print_json, say, tell
from twinlake.cli.progress import working
from twinlake.config.settings import Settings

Part = tuple[str, Callable[[], Any]]
"""A file of the bundle by its name, and what is in it: text, or what becomes JSON."""
VALUES = "values of records may be in it: logs and errors quote some. Read it before you pass it on."
_README = """This is what `twinlake support` has collected at {at}, of {home}.

Passwords, tokens, keys and their hashes are masked ({mask}), in whatever form they stood there.
Not masked are names of tables, topics, columns, users, machines and folders, and
{values}

contents.json says what is in it, and what of it could not be collected, and why.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("support")(support_command)


def support_command(
    file: Annotated[
        str | None, typer.Argument(help="a .tar.gz to write; here, named by the time, unless given")
    ] = None,
    log_mb: Annotated[
        int, typer.Option("--log-mb", parser=whole(1, 1_000), metavar="NUMBER",
                          help="so many megabytes of each log, the newest"),
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:  # fmt: skip
    """Collect what somebody who helps will ask for in one file: status, disk, doctor, logs, jobs, releases.

    Nothing need run, and what cannot be collected is named in it. No secret is in it: each that settings and
    data directory hold is masked, and nothing is written if one is left. Values of records may be in it,
    because logs and errors quote some: read it before you pass it on.
    """
    from twinlake.cli.support_parts import parts_of
    from twinlake.services.secrets import secrets_of

    settings, at = load_settings(), utc_now()
    to = _place(file, at)
    masker = Masker(secrets_of(settings))
    with working("collecting") as waiting:
        made, failed = collect(
            settings, parts_of(settings, log_mb << 20, masker), masker, at, waiting.update
        )
    refuse_left(made, masker)
    write(to, made, at)
    if as_json:
        print_json({"file": str(to), "bytes": to.stat().st_size, "files": sorted(made), "failed": failed})
        return
    size = f"{to.stat().st_size:,} bytes, {len(made)} files"
    say(f"{to}: {size}; {len(masker.secrets)} secrets are kept out of it")
    for name, error in failed.items():
        say(("not in it", "yellow"), f": {name}: {error['what']}")
    tell(VALUES)


def collect(
    settings: Settings, parts: Iterator[Part], masker: Masker, at: datetime, say_what: Callable[[str], None]
) -> tuple[dict[str, bytes], dict[str, dict[str, Any]]]:
    """Each file by its name, masked; and what could not be collected. One that fails stops no other."""
    made: dict[str, bytes] = {}
    failed: dict[str, dict[str, Any]] = {}
    for name, content in parts:
        say_what(f"collecting {name}")
        try:
            found = content()
            text = (
                found if isinstance(found, str) else json.dumps(to_json(found), indent=1, ensure_ascii=False)
            )
            made[name] = masker.mask(text).encode("utf-8", "replace")
        except Exception as error:  # whatever it is, it is named
            said = error if isinstance(error, TwinlakeError) else TwinlakeError(
                f"{type(error).__name__}: {error}"
            )  # fmt: skip
            failed[name] = {key: masker.mask(str(one)) for key, one in said.to_json().items()}
    about = {"at": format_moment(at), "home": str(settings.home), "files": sorted(made), "failed": failed}
    made["contents.json"] = masker.mask(json.dumps(about, indent=1, ensure_ascii=False)).encode()
    readme = _README.format(at=format_moment(at), home=settings.home, mask=MASK, values=VALUES)
    made["README.txt"] = masker.mask(readme).encode()
    return made, failed


def refuse_left(made: dict[str, bytes], masker: Masker) -> None:
    """TwinlakeError where a secret is in a file all the same."""
    left = [f"{what} in {name}" for name, content in made.items() for what in masker.left_in(content)]
    if left:
        raise TwinlakeError(
            "nothing was written: a secret would have been in it", "; ".join(left[:5]),
            "report it; a password that is part of common words should be another one",
        )  # fmt: skip


def write(to: Path, made: dict[str, bytes], at: datetime) -> None:
    """The archive, whole or not at all, for its owner alone."""
    folder, unfinished = to.name.removesuffix(".tar.gz"), to.with_name(f".{to.name}.{token_hex(8)}.tmp")
    try:
        with raising_disk_full(to.parent):
            # never through a link that somebody has laid there
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET), "wb") as out:
                with gzip.GzipFile(fileobj=out, mode="wb", filename="") as packed:
                    _pack(packed, folder, made, at)
            os.link(unfinished, to)  # never over another file
    except FileExistsError as error:
        raise _there(to) from error
    except OSError as error:
        raise UsageError(
            f"{to} cannot be written", error.strerror or str(error), "name another file"
        ) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def _pack(packed: gzip.GzipFile, folder: str, made: dict[str, bytes], at: datetime) -> None:
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in sorted(made.items()):
            one = tarfile.TarInfo(f"{folder}/{name}")
            one.size, one.mode, one.mtime = len(content), SECRET, int(at.timestamp())
            archive.addfile(one, io.BytesIO(content))


def _place(file: str | None, at: datetime) -> Path:
    if file == "":
        raise UsageError("no file is named", "the name is empty", "leave it out, or name a .tar.gz")
    by_time = f"twinlake-support-{at:%Y%m%dT%H%M%SZ}.tar.gz"
    to = Path(file or by_time).expanduser().absolute()
    if to.is_dir():
        to = to / by_time
    if to.exists() or to.is_symlink():
        raise _there(to)
    return to


def _there(to: Path) -> UsageError:
    return UsageError(f"{to} is there already", "nothing is written over it", "name another file")
