"""Users: who may sign in to the console and the SQL server, each with a role, in one file of salted hashes.

A line each: `user:iterations:salt:hash:role`; while a password is rotated `iterations:salt:hash` of the one
of before stands before the role, too, and either lets them in. Behind the role may stand `:disabled`, of who
is not let in, and `:{...}`, the rights of who does not read everything (`config/rights.py`). `access/users`
of the data directory holds it. A line `:mask:key`, which is no user's, has the key of masks that hash.
The SQL server reads it as another user of the system, by Python (HTTP) and by Java (JDBC, `Passwords.java`);
the console does too, whenever somebody signs in or asks for a page. Passwords are made here, never chosen:
192 random bits need no slow hash, and nobody has used them elsewhere.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.base.files import alone, replace_file
from twinlake.base.passwords import hashed, verify
from twinlake.config.rights import ALL, Rights

ANALYST, OPERATOR, ADMIN = "analyst", "operator", "admin"
ROLES = {
    ANALYST: "reads",
    OPERATOR: "reads and acts",
    ADMIN: "reads, acts, and is the one who `twinlake up` makes at first",
}
"""Each with what it may do."""
ACTING = (OPERATOR, ADMIN)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_LINE = re.compile(
    r"([^:\s]+)((?::\d{1,7}:[0-9a-f]{32}:[0-9a-f]{64}){1,2}):([a-z]+)(:disabled)?(?::(\{.*\}))?"
)
"""`Passwords.java` has the same form: a hash that was cut is none."""
_MASK = re.compile(r":mask:([0-9a-f]{64})")
_OF_ONE = 3
"""Of a password: iterations, salt, hash."""
_NOBODY = hashed("", secrets.token_urlsafe(24))
"""What a password of an unknown user is compared with: it takes as long."""


BeforeChange = Callable[[], None] | None
"""Called once a change is known to be possible, before it is made."""


@dataclass(frozen=True, kw_only=True)
class User:
    """One line of the file."""

    name: str
    role: str
    line: str
    """`user:iterations:salt:hash`, as `base/passwords.py` has it: another one is another password."""
    before: str = ""
    """The same of the password that holds beside it while that is rotated; empty else."""
    rights: Rights = ALL
    disabled: bool = False
    """Not let in by any password."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Of every password that lets this user in."""
        return (self.line, self.before) if self.before else (self.line,)

    def signed_in_by(self, line: str) -> User | None:
        """The user as one who has shown the password of this line; None where that holds no more."""
        is_in = line in self.lines and not self.disabled
        return replace(self, line=line, before="") if is_in else None

    @property
    def acts(self) -> bool:
        return self.role in ACTING

    @property
    def is_limited(self) -> bool:
        """Whether anything is held back from this user."""
        return self.rights != ALL

    def written(self) -> str:
        before = self.before.removeprefix(self.name)  # with its colon
        disabled = ":disabled" if self.disabled else ""
        rights = "" if self.rights == ALL else ":" + json.dumps(self.rights.to_json())
        return f"{self.line}{before}:{self.role}{disabled}{rights}\n"


def can_be_name(text: str) -> bool:
    """Whether a user could have this name."""
    return _NAME.fullmatch(text) is not None


def load(file: Path) -> dict[str, User]:
    """Every user by name. Nobody where there is no file; UsageError for one that is not ours, so that nobody
    gets in by what is left of it."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, str(getattr(error, "strerror", None) or error)) from error
    found: dict[str, User] = {}
    for number, text in enumerate(lines, 1):
        if number == 1 and _MASK.fullmatch(text):
            continue
        if not (parts := _LINE.fullmatch(text)):
            raise _unreadable(file, f"line {number} has not the form user:iterations:salt:hash:role")
        name, role = parts[1], parts[3]
        if name in found:
            raise _unreadable(file, f"line {number} has the name {name}, as one before")
        if role not in ROLES:
            raise _unreadable(file, f"line {number} has the unknown role {role}")
        line, before = _lines_of(name, parts[2].split(":")[1:])
        try:
            rights = Rights.from_json(json.loads(parts[5])) if parts[5] else ALL
        except (UsageError, ValueError) as error:
            raise _unreadable(file, f"line {number} has rights that mean nothing: {error}") from error
        found[name] = User(
            name=name, role=role, line=line, before=before, rights=rights, disabled=parts[4] is not None
        )
    return found


def mask_key(file: Path) -> str:
    """Of masks that hash, in hexadecimal: one for all, made with the first rights; empty before."""
    try:
        with file.open(encoding="utf-8") as lines:
            found = _MASK.fullmatch(lines.readline().strip())
    except FileNotFoundError:
        return ""
    return found[1] if found else ""


def known(file: Path, name: str) -> User:
    """NotFoundError without such a user."""
    return _known(load(file), name)


def refuse_damaged(file: Path) -> int:
    """How many users there are; UsageError where nobody is let in, as the file is not ours, or gone."""
    found = load(file)
    if not file.exists():
        raise UsageError(
            f"the users in {file} cannot be read", "there is no such file",
            "put it back from a backup; without one `twinlake down` and `twinlake up` make it again with its "
            "first users",
        )  # fmt: skip
    return len(found)


def _lines_of(name: str, parts: Sequence[str]) -> tuple[str, str]:
    """What `User` has of one or two passwords."""
    line, before = (":".join((name, *one)) if one else "" for one in (parts[:_OF_ONE], parts[_OF_ONE:]))
    return line, before


def admitted(file: Path, name: str, password: str) -> User | None:
    """The user with this name and password; takes as long where there is none."""
    user = load(file).get(name)
    matching = [line for line in (user.lines if user else (_NOBODY,)) if verify(line, name, password)]
    return user.signed_in_by(matching[0]) if user and matching else None


def add(file: Path, name: str, role: str, before: BeforeChange = None) -> str:
    """A new user's password, which is nowhere else; UsageError for a name or role that cannot be, or is
    there."""
    if not can_be_name(name):
        raise UsageError(
            f"{name!r} cannot be the name of a user",
            "it has other characters than letters, digits and _.@-, or more than 64",
            "choose another name",
        )
    _known_role(role)
    with _changing(file, before) as users:
        if name in users:
            raise UsageError(
                f"there is a user {name} already", f"with the role {users[name].role}",
                f"`twinlake users role {name} {role}` changes it, `twinlake users password {name}` makes "
                "another password",
            )  # fmt: skip
        users[name], password = _made(name, role)
    return password


def new_password(file: Path, name: str, before: BeforeChange = None) -> str:
    """Another password of a user; what was signed in with the one of before is signed out."""
    with _changing(file, before) as users:
        made, password = _made(name, _known(users, name).role)
        users[name] = replace(users[name], line=made.line, before="")
    return password


def set_role(file: Path, name: str, role: str, before: BeforeChange = None) -> None:
    """From the next request on."""
    _known_role(role)
    with _changing(file, before) as users:
        users[name] = replace(_known(users, name), role=role)


def set_rights(file: Path, name: str, rights: Rights, before: BeforeChange = None) -> None:
    """From the next statement on; those that run, and connections, end where one is lost."""
    rights.refuse_wrong()
    with _changing(file, before, secrets.token_hex(32)) as users:
        users[name] = replace(_known(users, name), rights=rights)


def set_disabled(file: Path, name: str, disabled: bool, before: BeforeChange = None) -> None:
    """Signed out, and not let in until they are enabled again; password, role and rights stay."""
    with _changing(file, before) as users:
        users[name] = replace(_known(users, name), disabled=disabled)


def remove(file: Path, name: str, before: BeforeChange = None) -> None:
    """Signed out with the next request."""
    with _changing(file, before) as users:
        _known(users, name)
        del users[name]


def ensure(file: Path, passwords: Mapping[str, str], reader: str) -> None:
    """The file with the user that the commands read by, and at first with an admin: `passwords` by name.

    Who is there with that password is left as they are. Others than `reader` are made with a new file alone:
    who has removed or changed them does not find them again.
    """
    is_new = not file.exists()
    with _changing(file) as users:
        for name, password in passwords.items():
            before = users.get(name)
            is_known = before is not None and _holds(before, password)
            if (is_new or name == reader) and not is_known:
                role = before.role if before else ANALYST if name == reader else ADMIN
                made = _with(name, role, password)
                users[name] = replace(before, line=made.line, before="") if before else made


def accept(file: Path, name: str, password: str, new: str) -> None:
    """Lets the user in by `new`, too; of the passwords of before by `password` alone."""
    with _changing(file) as users:
        user = _known(users, name)
        kept = next((line for line in user.lines if verify(line, name, password)), user.line)
        users[name] = replace(user, line=hashed(name, new).strip(), before=kept)


def keep_only(file: Path, name: str, password: str) -> None:
    """Lets the user in by this password alone, which is one of theirs already."""
    with _changing(file) as users:
        user = _known(users, name)
        line = next((line for line in user.lines if verify(line, name, password)), None)
        users[name] = replace(user, line=line or hashed(name, password).strip(), before="")


def _holds(user: User, password: str) -> bool:
    return any(verify(line, user.name, password) for line in user.lines)


def _made(name: str, role: str) -> tuple[User, str]:
    password = secrets.token_urlsafe(24)
    return _with(name, role, password), password


def _with(name: str, role: str, password: str) -> User:
    return User(name=name, role=role, line=hashed(name, password).strip())


@contextmanager
def _changing(file: Path, before: BeforeChange = None, key: str = "") -> Iterator[dict[str, User]]:
    """The users, written as a whole afterwards where they differ; one at a time. `key` is that of masks,
    where there is none yet."""
    with alone(file.with_name(".users.lock")):
        users, key = load(file), mask_key(file) or key
        known = dict(users)
        yield users
        if users != known:
            if before is not None:
                before()
            first = f":mask:{key}\n" if key else ""
            replace_file(file, first + "".join(user.written() for user in users.values()))


def _known(users: Mapping[str, User], name: str) -> User:
    if name not in users:
        known = ", ".join(sorted(users)) or "nobody"
        raise NotFoundError(f"there is no user {name!r}", f"known: {known}", "see `twinlake users list`")
    return users[name]


def _known_role(role: str) -> None:
    if role not in ROLES:
        raise UsageError(f"there is no role {role!r}", "", f"known: {', '.join(ROLES)}")


def _unreadable(file: Path, why: str) -> UsageError:
    return UsageError(
        f"the users in {file} cannot be read", why,
        "correct the line, or put the file back from a backup; without one remove it, then `twinlake down` "
        "and `twinlake up` make it again with its first users",
    )  # fmt: skip
