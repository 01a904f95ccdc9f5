"""`twinlake alarm list|test|silence`: what is not well, and who hears of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.times import format_moment, parse_duration, parse_moment, utc_now
from twinlake.cli.jobs import AS_JSON, this_user
from twinlake.cli.output import load_settings, print_json, say, show_error, show_rows, tell

LONGEST = timedelta(days=90)
_TIMES = 'say after how long, like "2 hours", or when, like 2026-01-31T12:00:00Z'


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    alarm = typer.Typer(help="What is not well, and who hears of it.", no_args_is_help=True)
    alarm.command("list")(list_command)
    alarm.command("test")(test_command)
    alarm.command("silence")(silence_command)
    app.add_typer(alarm, name="alarm")


def list_command(as_json: AS_JSON = False) -> None:
    """The alarms there are now, what is silenced, and what no receiver has accepted yet."""
    from twinlake.alarms import book, silences
    from twinlake.alarms.alarm import Alarm
    from twinlake.alarms.watch import book_file, is_old

    settings = load_settings()
    found: dict[str, Any] = book.read(book_file(settings))
    now = utc_now()
    quiet = [one for one in silences.load(settings) if now < parse_moment(one.until)]
    alarms = [Alarm.from_json(one) for one in found.get("alarms", ())]
    old = is_old(found.get("looked_at", ""), now)
    waiting = {name: len(messages) for name, messages in found.get("unsent", {}).items() if messages}
    if as_json:
        print_json({
            "watched": not old, "looked_at": found.get("looked_at"),
            "alarms": [{**one.to_json(), "severity": one.severity, "docs": one.docs} for one in alarms],
            "silenced": [one.__dict__ for one in quiet], "unsent": waiting, "lost": found.get("lost", {}),
        })  # fmt: skip
        return
    if old:
        last = found.get("looked_at") or "never"
        tell((f"nobody watches now: the service alarms has looked last at {last}", "yellow"))
    if alarms:
        rows = [
            (one.since[:19], one.severity, one.kind, f"{one.title}: {one.what}",
             "silenced" if one.silenced else "", one.remedy)
            for one in alarms
        ]  # fmt: skip
        show_rows(("since", "severity", "kind", "what", "", "what to do"), rows)
    else:
        say("no alarms")
    for one in quiet:
        say(f"silenced until {one.until} by {one.by}: {one.what} {one.reason}".rstrip())
    for name, many in waiting.items():
        say((f"{many} messages wait until {name} accepts them: see `twinlake logs alarms`", "yellow"))
    for name, many in found.get("lost", {}).items():
        say((f"{many} messages to {name} were left out, because too many waited", "red"))


def test_command() -> None:
    """Send one message to each receiver, now; exit code 1 where one does not accept it."""
    from twinlake.alarms.alarm import Alarm, Message
    from twinlake.alarms.receivers import receivers_of

    settings = load_settings()
    now = format_moment(utc_now())
    alarm = Alarm(
        kind="topic", title="test", what="this is a test: nothing is wrong", since=now,
        why=f"{this_user() or 'somebody'} has asked for it", remedy="nothing is to be done",
    )  # fmt: skip
    failed = False
    for name, receiver in receivers_of(settings).items():
        try:
            receiver.send(Message(event="test", at=now, alarm=alarm))
        except Exception as error:  # a network, another's code
            failed = True
            why = f"{type(error).__name__}: {error}"
            if isinstance(error, TwinlakeError):
                why = f"{error.what}: {error.why}".removesuffix(": ")
            show_error(TwinlakeError(
                f"{name} has not accepted it", why,
                "correct [alarms] in twinlake.toml, then `twinlake down` and `twinlake up`",
            ))  # fmt: skip
        else:
            say(f"{name} has accepted it")
    if failed:
        raise typer.Exit(1)


def silence_command(
    what: Annotated[
        str, typer.Argument(help="a kind of alarm, a table, a topic, or a title of `twinlake alarm list`")
    ],
    until: Annotated[
        str | None, typer.Option(help='when it ends, RFC 3339, or after how long, like "2 hours"')
    ] = None,
    reason: Annotated[str, typer.Option(help="why")] = "",
    end: Annotated[bool, typer.Option("--end", help="end it now")] = False,
) -> None:
    """Tell nobody of these alarms until then; they stay in `twinlake alarm list` and in the console."""
    from twinlake.alarms import book, silences
    from twinlake.alarms.alarm import KINDS, Alarm
    from twinlake.alarms.watch import book_file

    settings, now = load_settings(), utc_now()
    if end:
        if until is not None:
            raise UsageError("--end and --until exclude each other", "", "give one of them")
        silences.end(settings, what)
        say(f"{what} is silenced no more")
        return
    if until is None:
        raise UsageError("no end is given", "a silence without one is forgotten", 'add --until "2 hours"')
    if not what.strip():
        raise UsageError(
            "nothing is named", "it is empty", "name a kind of alarm, a table, a topic or a title"
        )
    ends = _moment(until, now)
    if not now < ends <= now + LONGEST:
        why = "it is over already" if ends <= now else f"it is more than {LONGEST.days} days away"
        raise UsageError(f"--until {until} cannot be", why, _TIMES)
    by = this_user() or "somebody"
    made = book.Silence(what=what, until=format_moment(ends), reason=reason, by=by)
    silences.add(settings, made, now)
    say(f"{what} is silenced until {made.until}")
    there = book.read(book_file(settings)).get("alarms", ())
    if what not in KINDS and not any(made.covers(Alarm.from_json(one), now) for one in there):
        tell(f"no alarm is about {what} now; one that comes until then is not sent")


def _moment(text: str, now: Any) -> Any:
    try:
        return now + parse_duration(text)
    except OverflowError as error:
        raise UsageError(f"--until {text} cannot be", "it is too far away", _TIMES) from error
    except TwinlakeError:
        pass
    try:
        return parse_moment(text)
    except TwinlakeError as error:
        raise UsageError(
            f"--until {text} cannot be", "it says neither when, nor after how long", _TIMES
        ) from error
