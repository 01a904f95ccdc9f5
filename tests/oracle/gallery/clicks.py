"""What the gallery's tables of a music site must show."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

from tests.oracle.gallery.records import Record, Rows

MINUTE = timedelta(minutes=1)
GAP, BEFORE = 30 * MINUTE, timedelta(seconds=30)
LENGTHS = {"5 minutes": 5 * MINUTE, "1 day": timedelta(days=1), "7 days": timedelta(days=7)}
NOWHERE = (None, None, None)


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    clicks, profiles, searches = valid["clicks"], valid["profiles"], valid["searches"]
    lately = songs_lately(valid["plays"], watermarks.get("plays"))
    return {
        "kept_clicks": _events(clicks, "user", "page", "clicked_at"),
        "kept_profiles": _events(profiles, "user", "plan", "country", "valid_from"),
        "kept_searches": _events(searches, "user", "words", "searched_at"),
        "profile_history": profile_history(profiles),
        "clicks_with_profile": clicks_with_profile(clicks, profiles),
        "clicks_after_searches": clicks_after_searches(clicks, searches),
        "user_sessions": user_sessions(clicks),
        "song_minutes": song_minutes(valid["plays"]),
        "songs_lately": lately,
        "top_songs": top_songs(lately),
    }


def profile_history(profiles: list[Record]) -> Rows:
    shown: Rows = {}
    for user, held in _by_user(profiles).items():
        held.sort(key=lambda one: (one["valid_from"], _place(one)))
        last_of_time = {one["valid_from"]: (one["plan"], one["country"]) for one in held}
        begun: dict[datetime, tuple[str, str | None]] = {}
        for at, profile in last_of_time.items():
            if not begun or profile != [*begun.values()][-1]:
                begun[at] = profile
        ends = [*[*begun][1:], None]
        for (at, (plan, country)), end in zip(begun.items(), ends, strict=True):
            shown[user, at] = {
                "valid_to": end, "is_current": end is None, "plan": plan, "country": country,
            }  # fmt: skip
    return shown


def clicks_with_profile(clicks: list[Record], profiles: list[Record]) -> Rows:
    shown: Rows = {}
    of_user = _by_user(profiles)
    for click in clicks:
        before = [one for one in of_user[click["user"]] if one["valid_from"] <= click["clicked_at"]]
        valid = max(before, key=lambda one: (one["valid_from"], _place(one)), default=None)
        profile = {name: valid[name] if valid else None for name in ("plan", "country")}
        shown[_place(click)] = {**_fields(click, "user", "page", "clicked_at"), **profile}
    return shown


def clicks_after_searches(clicks: list[Record], searches: list[Record]) -> Rows:
    shown: Rows = {}
    of_user = _by_user(searches)
    for click in clicks:
        clicked = _fields(click, "user", "page", "clicked_at")
        before = [
            search
            for search in of_user[click["user"]]
            if timedelta(0) <= click["clicked_at"] - search["searched_at"] <= BEFORE
        ]
        for search in before:
            found = _fields(search, "words", "searched_at")
            shown[(*_place(click), *_place(search))] = {**clicked, **found}
        if not before:
            shown[(*_place(click), *NOWHERE)] = {**clicked, "words": None, "searched_at": None}
    return shown


def user_sessions(clicks: list[Record]) -> Rows:
    times = defaultdict(list)
    for click in clicks:
        times[click["user"]].append(click["clicked_at"])
    shown: Rows = {}
    for user, held in times.items():
        sessions: list[list[datetime]] = []
        for at in sorted(held):
            if sessions and at - sessions[-1][-1] <= GAP:
                sessions[-1].append(at)
            else:
                sessions.append([at])
        for session in sessions:
            shown[user, session[0]] = {"session_end": session[-1], "clicks": len(session)}
    return shown


def song_minutes(plays: list[Record]) -> Rows:
    counts = Counter((play["song"], play["played_at"].replace(second=0, microsecond=0)) for play in plays)
    return {key: {"window_end": key[1] + MINUTE, "plays": count} for key, count in counts.items()}


def songs_lately(plays: list[Record], watermark: datetime | None) -> Rows:
    shown: Rows = {}
    if watermark is None:
        return shown
    end = watermark.replace(second=0, microsecond=0)
    for last, length in LENGTHS.items():
        counts = Counter(play["song"] for play in plays if end - length <= play["played_at"] < end)
        for song, count in counts.items():
            shown[last, song] = {"plays": count}
    return shown


def top_songs(lately: Rows) -> Rows:
    shown: Rows = {}
    for last in LENGTHS:
        songs = sorted((-row["plays"], song) for (one, song), row in lately.items() if one == last)
        for place, (plays, song) in enumerate(songs[:10], start=1):
            shown[last, song] = {"place": place, "plays": -plays}
    return shown


def _by_user(records: list[Record]) -> defaultdict[Any, list[Record]]:
    """Those without a user belong to nobody, and meet no click."""
    found = defaultdict(list)
    for record in records:
        if record["user"] is not None:
            found[record["user"]].append(record)
    return found


def _events(records: list[Record], *names: str) -> Rows:
    return {_place(record): _fields(record, *names) for record in records}


def _place(record: Record) -> tuple[Any, ...]:
    return (0, record["partition"], record["offset"])


def _fields(record: Record, *names: str) -> dict[str, Any]:
    return {name: record[name] for name in names}
