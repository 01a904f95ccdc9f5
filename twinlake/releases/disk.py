"""Disk: what of a lake takes how much, which version is kept by whom, and what could be let go.

`retire` and the clean-up decide by the same functions, so that what is announced here is what they do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from twinlake.base.disk import Entry, Walk
from twinlake.base.errors import TwinlakeError
from twinlake.base.job import Job
from twinlake.base.location import Location
from twinlake.base.times import parse_moment
from twinlake.batch.maintain import KEEP_FILES_HOURS, old_commits, pinned_s
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Plans
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.runs import Runs
from twinlake.lake.catalog.version import Version, read_versions
from twinlake.lake.delta import delta
from twinlake.lake.delta.kept_commits import KEEP_COMMITS_S
from twinlake.lake.disk import LOG, PUBLISHED, STAGED, TABLE, Owner, entries, needed, owner, spare_files
from twinlake.releases.retire import retirable

LIVE, KEPT, BUILT, UNUSED, RETIRED, LEFT = "live", "kept", "built", "unused", "retired", "left"
"""Of a table's version: readers see it; a kept release uses it; none does, and it stays, because it was built
a short time ago or another version reads it; `twinlake retire` lets it go; its files go by the clean-up;
files without a version's definition."""
RETIRE, CLEAN_UP = "retire", "clean-up"
"""What lets something go."""


@dataclass(kw_only=True)
class Part:
    """What belongs together. `releases` are the kept ones that use a version, `spare_bytes` those of files
    that hold none of the rows of now."""

    kind: str
    name: str
    version: str = ""
    state: str = ""
    releases: tuple[int, ...] = ()
    bytes: int = 0
    files: int = 0
    spare_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Freeable:
    """What could be let go, by what. `bytes` are free once that is done, `later_bytes` hours after it."""

    by: str
    command: str
    what: tuple[str, ...]
    bytes: int
    later_bytes: int


@dataclass(kw_only=True)
class OfLake:
    """`unknown` says what could not be found out, and why."""

    parts: list[Part] = field(default_factory=list)
    freeable: list[Freeable] = field(default_factory=list)
    unknown: list[TwinlakeError] = field(default_factory=list)


@dataclass
class _Known:
    """What the catalog says, as far as it can be read."""

    versions: Sequence[Version] = ()
    history: Sequence[Release] = ()
    jobs: Sequence[Job] = ()
    unused: Sequence[Version] = ()


def of_lake(lake: Location, walk: Walk, keep: int, now: datetime) -> OfLake:
    """Of the lake as its files are, `keep` releases kept; what is wrong with some of them is in `unknown`."""
    made = OfLake()
    try:
        found = _by_owner(lake, walk)
    except OSError as error:
        made.unknown.append(_error(lake, error))
        return made
    known = _known(lake, keep, now, made.unknown)
    made.parts = [_part(one, files, known, keep) for one, files in found.items()]
    clean_up = _CleanUp(lake, now.timestamp(), known.jobs)
    for part, files in zip(made.parts, found.values(), strict=True):
        try:
            clean_up.look(part, files, known)
        except FileNotFoundError:  # it has no rows, or they go in this moment
            continue
        except TwinlakeError as error:
            made.unknown.append(error)
        except OSError as error:
            made.unknown.append(_error(lake, error))
    unused = [one for one in made.parts if one.state == UNUSED]
    made.freeable = [
        Freeable(
            by=RETIRE, command=f"twinlake retire --keep {keep}", bytes=0,
            what=tuple(f"{one.name} {one.version}" for one in unused),
            later_bytes=sum(_rows(one, found[Owner(TABLE, one.name, one.version)]) for one in unused),
        ),
        Freeable(
            by=CLEAN_UP, command="twinlake maintain", what=tuple(clean_up.what), bytes=clean_up.bytes,
            later_bytes=clean_up.later_bytes,
        ),
    ]  # fmt: skip
    return made


def _by_owner(lake: Location, walk: Walk) -> dict[Owner, list[Entry]]:
    found: dict[Owner, list[Entry]] = defaultdict(list)
    for one in entries(lake, walk):
        found[owner(one.path, one.is_folder)].append(one)
    return dict(sorted(found.items()))


def _known(lake: Location, keep: int, now: datetime, unknown: list[TwinlakeError]) -> _Known:
    known = _Known()
    try:
        if (about := formats.known(lake)) is None:
            return known
        formats.refuse_newer(lake, about)
        known.versions, torn = read_versions(lake)
        unknown += torn
        known.history = release_log.releases(lake)
        living = [one for one in known.versions if one.state == "living"]
        plans = Plans(lake).newest_ones(1000)
        known.unused = retirable(living, living, known.history, plans, keep, now)
        known.jobs = Runs(lake).all()
    except TwinlakeError as error:
        unknown.append(error)
    except OSError as error:
        unknown.append(_error(lake, error))
    return known


def _part(one: Owner, files: Iterable[Entry], known: _Known, keep: int) -> Part:
    sizes = [entry.bytes for entry in files]
    part = Part(
        kind=one.kind, name=one.name, version=one.version, bytes=sum(sizes),
        files=sum(not entry.is_folder for entry in files),
    )  # fmt: skip
    if one.kind == TABLE:
        users = [release for release in known.history[-keep:] if release.tables.get(one.name) == one.version]
        part.releases = tuple(release.number for release in users)
        part.state = _state(one, known, part.releases)
    return part


def _state(one: Owner, known: _Known, kept_by: tuple[int, ...]) -> str:
    version = next((v for v in known.versions if (v.table, v.name) == (one.name, one.version)), None)
    if version is None:
        return LEFT if known.versions else ""
    if version.retired_at:
        return RETIRED
    if any(v is version for v in known.unused):
        return UNUSED
    if not kept_by:
        return BUILT
    return LIVE if kept_by[-1] == known.history[-1].number else KEPT


class _CleanUp:
    """What `maintain` would delete now, and what later, of what nobody uses any more today."""

    def __init__(self, lake: Location, now_s: float, jobs: Iterable[Job]) -> None:
        self._lake, self._now_s = lake, now_s
        self._alive = {job.id for job in jobs if not job.ended}
        self._pinned_s = pinned_s(jobs, now_s)
        self.what: list[str] = []
        self.bytes = self.later_bytes = 0

    def look(self, part: Part, files: Sequence[Entry], known: _Known) -> None:
        """Takes in one part of the lake."""
        if part.kind == LOG:
            self._table(part, self._lake / "logs" / part.name, f"logs/{part.name}/", files)
        elif part.kind == PUBLISHED:
            self._table(part, self._lake / PUBLISHED / part.name, f"{PUBLISHED}/{part.name}/", files)
        elif part.kind == STAGED:
            if part.name not in self._alive:
                self._add(part, f"staged by job {part.name}", [(part.bytes, True)])
        elif part.state == RETIRED:
            self._retired(part, files, known)
        elif part.kind == TABLE and part.state not in (UNUSED, LEFT, ""):
            place = self._lake / "tables" / part.name / part.version
            self._table(part, place, f"tables/{part.name}/{part.version}/", files)

    def _retired(self, part: Part, files: Iterable[Entry], known: _Known) -> None:
        rows = _rows(part, files)
        version = next(v for v in known.versions if (v.table, v.name) == (part.name, part.version))
        if rows and version.retired_at:
            age_s = self._now_s - parse_moment(version.retired_at).timestamp()
            self._add(part, f"{version}, retired", [(rows, age_s > self._keep_s(KEEP_FILES_HOURS * 3600))])

    def _table(self, part: Part, place: Location, prefix: str, files: Sequence[Entry]) -> None:
        if not delta.exists(place):
            return
        inside = [
            one._replace(path=one.path.removeprefix(prefix)) for one in files if one.path.startswith(prefix)
        ]
        live, gone = needed(place)
        spare = list(spare_files(inside, live, gone))
        part.spare_bytes = sum(one.bytes for one in spare)
        # while a job runs that is older than what Delta knows, no file is deleted
        keep_s = self._keep_s(KEEP_FILES_HOURS * 3600)
        may_go = keep_s <= KEEP_FILES_HOURS * 3600
        found = [(one.bytes, may_go and self._now_s - one.modified_s > keep_s) for one in spare]
        old = {
            f"{delta.LOG_FOLDER}/{name}"
            for name in old_commits(place, self._now_s, self._keep_s(KEEP_COMMITS_S))
        }
        commits = [(one.bytes, True) for one in inside if one.path in old]
        about = (
            f"{PUBLISHED} {part.name}" if part.kind == PUBLISHED else f"{part.name} {part.version}".strip()
        )
        self._add(part, about, found + commits)

    def _keep_s(self, seconds: float) -> float:
        return max(seconds, self._pinned_s)

    def _add(self, part: Part, what: str, found: Iterable[tuple[int, bool]]) -> None:
        sizes = {True: 0, False: 0}
        for bytes_, at_once in found:
            sizes[at_once] += bytes_
        if any(sizes.values()):
            self.what.append(what)
        self.bytes += sizes[True]
        self.later_bytes += sizes[False]


def _rows(part: Part, files: Iterable[Entry]) -> int:
    """Bytes without its definition, which stays for ever."""
    return sum(one.bytes for one in files if not one.path.endswith(f"/{part.version}.json"))


def _error(lake: Location, error: OSError) -> TwinlakeError:
    return TwinlakeError(
        f"{error.filename or lake} cannot be read", error.strerror or str(error),
        "use the account that has run `twinlake up`",
    )  # fmt: skip
