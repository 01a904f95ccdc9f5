import os
import subprocess
import sys
from pathlib import Path

import pytest

from twinlake.services import sql
from twinlake.services.confine import Mount, plan

AS_NOBODY = (("unshare", "--mount", "--propagation", "private"), ("--become", "65534"), "65534 []")
AS_A_USER = ((*AS_NOBODY[0], "--user", "--map-root-user"), (), "0 []")
needs_namespaces = pytest.mark.skipif(
    not (sql.is_root() and sql.namespaces()), reason="needs root and mount namespaces"
)


def test_a_closed_folder_is_covered_and_only_the_named_trees_come_back() -> None:
    steps = plan(
        Path("/root/project/.twinlake"),
        read=[Path("/root/project"), Path("/root/project/.twinlake/lake"), Path("/usr/lib/jvm/j")],
        write=[Path("/root/project/.twinlake/sql")],
        closed=[Path("/root")],
    )

    assert steps == (
        Mount(path=Path("/root"), kind="empty"),
        Mount(path=Path("/root/project"), kind="read"),
        Mount(path=Path("/root/project/.twinlake"), kind="empty"),
        Mount(path=Path("/root/project/.twinlake/lake"), kind="read"),
        Mount(path=Path("/usr/lib/jvm/j"), kind="read"),
        Mount(path=Path("/root/project/.twinlake/sql"), kind="write"),
    )


ATTEMPTS = """
import os, sys
home = sys.argv[1]
def tries(what, *arguments):
    try:
        what(*arguments)
        return "done"
    except OSError as error:
        return type(error).__name__
print(os.getuid(), os.getgroups()[:1])
print(tries(open, home + "/lake/data", "r"))
print(tries(open, home + "/lake/data", "w"))
print(tries(os.mkdir, home + "/lake/more"))
print(tries(os.mkdir, home + "/lake/disk/more"))
print(tries(open, home + "/services.json"))
print(tries(os.listdir, home + "/run"))
print(tries(open, home + "/sql/mine", "w"))
print(tries(os.mknod, home + "/sql/device", 0o600 | 0o020000, os.makedev(1, 1)))
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")))
"""


@needs_namespaces
@pytest.mark.parametrize(("words", "become", "who"), [AS_NOBODY, AS_A_USER], ids=["root", "user"])
def test_the_sql_server_reads_the_lake_but_cannot_write_it_nor_see_a_secret(
    tmp_path: Path, words: tuple[str, ...], become: tuple[str, ...], who: str
) -> None:
    home = tmp_path / "closed" / "home"
    for folder in ("lake", "lake/disk", "sql", "run"):
        (home / folder).mkdir(parents=True)
    home.parent.chmod(0o700)
    (home / "lake" / "data").write_text("rows")
    (home / "services.json").write_text("token")
    if become:
        os.chown(home / "sql", 65534, 65534)
    project = Path(__file__).resolve().parents[2]

    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "mode=1777,size=1m", "disk", home / "lake" / "disk"], check=True
    )
    done = subprocess.run(
        [*words, sys.executable, "-m", "twinlake.services.confine", *become,
         "--home", str(home), "--read", str(home / "lake"), "--write", str(home / "sql"),
         "--read", str(project), "--read", sys.base_prefix, "--", sys.executable, "-c", ATTEMPTS, str(home)],
        capture_output=True, text=True, cwd=project,
    )  # fmt: skip
    subprocess.run(["umount", home / "lake" / "disk"], check=True)

    assert done.stdout.split("\n")[:-1] == [
        who,
        "done",
        "OSError",  # read-only file system
        "OSError",
        "OSError",
        "FileNotFoundError",
        "FileNotFoundError",
        "done",
        "PermissionError",
        "0000000000000000",
    ], done.stderr


LOOKED_AT = """
import os, sys
print(os.getpid(), flush=True)
sys.stdin.read()
"""
LOOKS = """
import os, sys
os.setgroups([]), os.setgid(65534), os.setuid(65534)
for name in ("root", "environ", "mem", "fd/0"):
    try:
        path = f"/proc/{sys.argv[1]}/{name}"
        os.listdir(path) if name == "root" else open(path).close()
        print(name, "is open")
    except PermissionError:
        print(name, "is closed")
"""


@needs_namespaces
def test_a_process_of_the_same_user_cannot_look_into_the_sql_server(tmp_path: Path) -> None:
    project = Path(__file__).resolve().parents[2]
    words = [*AS_NOBODY[0], sys.executable, "-m", "twinlake.services.confine", *AS_NOBODY[1]]
    with subprocess.Popen(
        [*words, "--", sys.executable, "-c", LOOKED_AT], cwd=project, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as server:  # fmt: skip
        assert server.stdout and server.stdin
        looking = [sys.executable, "-c", LOOKS, server.stdout.readline().strip()]
        looked = subprocess.run(looking, capture_output=True, text=True)
        server.stdin.close()

    found = ["root is closed", "environ is closed", "mem is closed", "fd/0 is closed"]
    assert looked.stdout.splitlines() == found, looked.stderr
