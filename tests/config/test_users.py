"""Users are lines of one file: added, changed, removed one at a time, and nobody gets in by a broken one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.config import users


def roles(file: Path) -> dict[str, str]:
    return {name: user.role for name, user in users.load(file).items()}


def test_a_user_is_admitted_with_the_password_that_was_made_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "users"
    password, other = users.add(file, "ann", "analyst"), users.add(file, "ben", "operator")

    admitted = users.admitted(file, "ben", other)

    assert admitted is not None and admitted.acts
    tries = [("ann", other), ("ann", ""), ("eve", password), ("", password), ("ann:1", password)]
    assert [users.admitted(file, *one) for one in tries] == [None] * len(tries)
    assert password not in file.read_text() and other not in file.read_text()


def test_a_role_and_a_password_are_changed_and_a_user_removed(tmp_path: Path) -> None:
    file = tmp_path / "users"
    before = users.add(file, "ann", "analyst")

    users.set_role(file, "ann", "admin")
    after = users.new_password(file, "ann")

    assert roles(file) == {"ann": "admin"}
    assert users.admitted(file, "ann", before) is None and users.admitted(file, "ann", after)
    users.remove(file, "ann")
    assert roles(file) == {} and users.admitted(file, "ann", after) is None


@pytest.mark.parametrize("name", ["", "a:b", "a b", "a\nb", "<img>", "-a", "ä", "a" * 65])
def test_a_name_that_cannot_stand_in_the_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        users.add(tmp_path / "users", name, "analyst")


def test_what_is_there_or_not_there_is_said(tmp_path: Path) -> None:
    file = tmp_path / "users"
    users.add(file, "ann", "analyst")

    with pytest.raises(UsageError, match="a user ann already"):
        users.add(file, "ann", "admin")
    with pytest.raises(UsageError, match="no role 'root'"):
        users.set_role(file, "ann", "root")
    with pytest.raises(NotFoundError, match="no user 'eve'"):
        users.remove(file, "eve")


def test_while_a_password_is_rotated_either_admits_and_no_part_of_the_line_does(tmp_path: Path) -> None:
    file = tmp_path / "users"
    old, other = users.add(file, "ann", "operator"), users.add(file, "ben", "analyst")
    alone = file.read_text()
    users.accept(file, "ann", old, "new")
    users.accept(file, "ann", "new", "newest")
    users.accept(file, "ann", "newest", "newer")
    whole = file.read_text()

    assert len(whole.splitlines()) == 2 and roles(file) == {"ann": "operator", "ben": "analyst"}
    for password, admits in {"newest": True, "newer": True, "new": False, old: False, other: False}.items():
        assert (users.admitted(file, "ann", password) is not None) == admits, password
    line, ben = whole.splitlines()
    cut = [line[:end] for end in range(len(line))]
    hashes = line.removesuffix(":operator")
    for left in (*cut, f"{hashes}{hashes.removeprefix('ann')}:operator", f"{line}\n{alone.splitlines()[0]}"):
        file.write_text(f"{ben}\n{left}\n")
        with pytest.raises(UsageError, match=r"line [23] has"):
            users.admitted(file, "ann", "newer")
    file.write_text(whole)
    users.keep_only(file, "ann", "newer")
    assert file.read_text().count(":") == alone.count(":")
    assert users.admitted(file, "ann", "newer") and users.admitted(file, "ann", "newest") is None


SALT, HASH = 32 * "f", 64 * "f"
ODD = [
    (32 * "z", HASH, "admin"),
    (SALT, HASH, "root"),
    (SALT, HASH, ""),
    ("ff", HASH, "admin"),
    (SALT, "ff", "admin"),
]
BROKEN = ["mallory", "", *(f"a:1:{salt}:{hash_}:{role}" for salt, hash_, role in ODD)]


@pytest.mark.parametrize("line", BROKEN)
def test_a_file_with_a_line_that_is_none_of_ours_admits_nobody(tmp_path: Path, line: str) -> None:
    file = tmp_path / "users"
    password = users.add(file, "ann", "analyst")
    file.write_text(f"{file.read_text()}{line}\n")

    with pytest.raises(UsageError, match="line 2"):
        users.admitted(file, "ann", password)


def test_what_is_left_of_a_cut_file_admits_nobody(tmp_path: Path) -> None:
    file = tmp_path / "users"
    password = users.add(file, "ann", "operator")
    whole = file.read_text()
    for left in (whole[: whole.rindex(":")], whole[: whole.rindex(":") - 40] + ":operator\n", whole * 2):
        file.write_text(left)
        with pytest.raises(UsageError, match=r"line [12] has"):
            users.admitted(file, "ann", password)


def test_the_first_admin_is_made_with_the_file_alone_and_the_reader_whenever_it_is_missing(
    tmp_path: Path,
) -> None:
    file, first = tmp_path / "access" / "users", {"analyst": "a", "admin": "b"}
    users.ensure(file, first, "analyst")
    made = file.read_text()

    users.ensure(file, first, "analyst")
    assert file.read_text() == made and roles(file) == {"analyst": "analyst", "admin": "admin"}
    users.remove(file, "admin")
    users.remove(file, "analyst")
    users.ensure(file, {"analyst": "c", "admin": "b"}, "analyst")

    assert roles(file) == {"analyst": "analyst"} and users.admitted(file, "analyst", "c")


def test_of_changes_at_once_none_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "users"
    names = [f"user-{number}" for number in range(8)]
    threads = [threading.Thread(target=users.add, args=(file, name, "analyst")) for name in names]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(roles(file)) == names
