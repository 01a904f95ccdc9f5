"""Owns a project as a commit of git has it: its files in another folder, the working tree untouched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.config.project import FILE, Project

MAIN = ("origin/HEAD", "origin/main", "origin/master")
"""What a branch is compared with, the first that there is."""
LIMIT_S = 120.0


def commit_of_ref(root: Path, ref: str | None) -> str:
    """The commit that git means by a name; by none, the one at which HEAD has left the remote's main branch,
    and HEAD itself where there is no remote.

    UsageError outside of git, NotFoundError for a name of no commit that is here.
    """
    _done(root, "rev-parse", "--git-dir")
    if ref is not None:
        return _commit(root, ref)
    head = _commit(root, "HEAD")
    bases = (_asked(root, "merge-base", head, main) for main in MAIN)
    base = next((one.stdout.strip() for one in bases if not one.returncode), None)
    if base is None and _done(root, "rev-parse", "--is-shallow-repository") == "true":
        why = "this clone is shallow: it has only the newest commits of one branch"
        remedy = "fetch more (`git fetch --unshallow`), or name a commit: --against HEAD^1"
        raise NotFoundError("git does not know where this branch has left the main one", why, remedy)
    return base or head


@contextmanager
def project_at(project: Project, commit: str) -> Iterator[Project | None]:
    """The project as its files are there, until the end of the block; None where it has none yet."""
    with TemporaryDirectory(prefix="twinlake-commit-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}  # that of the working tree stays as it is
        _done(project.root, "read-tree", commit, **index)
        tree = Path(folder) / "tree"
        tree.mkdir()
        _done(project.root, "checkout-index", "--all", f"--prefix={tree}/", **index)
        root = tree / _done(project.root, "rev-parse", "--show-prefix")
        yield Project.load(root) if (root / FILE).exists() else None


def _commit(root: Path, ref: str) -> str:
    if ref.startswith("-"):  # git would take it for an option
        raise UsageError(f"{ref!r} is no commit", "it begins with -", "name a branch, a tag or a commit")
    found = _asked(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if found.returncode:
        why = _said(found) or "there is none of this name, or a shallow clone does not reach back to it"
        remedy = "fetch it (`git fetch origin main`), or name another one: --against HEAD"
        if ref == "HEAD":
            why, remedy = "this repository has no commit yet", "commit the project's files, then change them"
        raise NotFoundError(f"git has no commit {ref!r} here", why, remedy)
    return found.stdout.strip()


def _done(root: Path, *arguments: str, **environ: str) -> str:
    """What git says. UsageError where it refuses."""
    found = _asked(root, *arguments, **environ)
    if found.returncode:
        remedy = "run it in a clone of the project, or `git init` there and commit"
        raise UsageError(_unread(root), _said(found), remedy)
    return found.stdout.strip()


def _asked(root: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, errors="replace",
            timeout=LIMIT_S, env={**os.environ, **environ},
        )  # fmt: skip
    except FileNotFoundError as error:
        raise UsageError(_unread(root), "git is not installed", "install git") from error
    except subprocess.TimeoutExpired as error:
        raise TwinlakeError(_unread(root), f"git took longer than {LIMIT_S:g} s", "try again") from error


def _unread(root: Path) -> str:
    return f"{root} cannot be read as it was committed"


def _said(found: subprocess.CompletedProcess[str]) -> str:
    return found.stderr.strip().removeprefix("fatal: ")
