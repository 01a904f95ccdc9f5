"""Unit: what systemd needs to know to run the services of one data directory from boot to shutdown.

`twinlake up` and `down` do the work, as by hand: `up` looks at everything first, starts the supervisor, and
has ended when all answers. The supervisor is then what systemd watches. When that alone is killed, systemd
ends what it left and starts everything again, by which no service loses anything.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from twinlake.config.library import IMPORTABLE
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.supervise.control import TURN_S
from twinlake.services.supervise.process import PASSED_ON

NAME = "twinlake.service"
ENVIRONMENT = "/etc/twinlake/environment"
"""Variables that the unit does not hold: secrets, and settings of this machine."""
START_S = 1_800
"""The first start fetches jars and builds every table. `up` itself gives up where nothing goes on."""
STOP_S = int(2 * TURN_S) + 30
"""`down` may wait for another command, and then for what it ends."""
_HOMES = (Path("/home"), Path("/root"), Path("/run/user"))
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))
_OF_LOGIN = ("HOME", "LOGNAME", "USER", "TMPDIR")
"""Variables that systemd sets itself, or a session had."""


def unit(
    settings: Settings, environ: Mapping[str, str], user: str, options: Iterable[str] = (),
    python: str = sys.executable,
) -> str:  # fmt: skip
    """The file's text. `options` are those of `twinlake up`; of `environ` it has what a shell passes on to
    services, and no setting."""
    folders, project = folders_of(settings), settings.project.root
    kept = {name: environ[name] for name in PASSED_ON if name in environ and name not in _OF_LOGIN}
    written = [settings.home, settings.jars]
    if isinstance(settings.lake, Path):
        written.append(settings.lake)
    places = [*written, project, Path(python)]
    # -P: a module of the project is not taken for the library's
    command = [python, "-P", "-m", "twinlake", "--home", str(settings.home), "--project", str(project)]
    lines = [
        "[Unit]",
        f"Description=Twinlake, {_plain(settings.home)}",
        "Wants=network-online.target",
        "After=network-online.target",
        f"RequiresMountsFor={' '.join(map(_word, dict.fromkeys(map(str, places))))}",
        "# a setting that is wrong stays wrong: it is not tried for ever",
        "StartLimitIntervalSec=1h",
        "StartLimitBurst=5",
        "",
        "[Service]",
        "# `up` ends when everything answers; the supervisor goes on",
        "Type=forking",
        f"PIDFile={_plain(folders.supervisor_pid)}",
        f"ExecStart={_words([*command, 'up', *options])}",
        f"ExecStop={_words([*command, 'down'])}",
        f"TimeoutStartSec={START_S}",
        f"TimeoutStopSec={STOP_S}",
        "Restart=on-failure",
        "RestartSec=30",
        f"User={_plain(user)}",
        f"WorkingDirectory={_plain(project)}",
        *(f"Environment={_word(f'{name}={value}')}" for name, value in {**kept, **IMPORTABLE}.items()),
        "# TWINLAKE_..., one a line, for its owner alone: nobody reads it in `systemctl show`",
        f"EnvironmentFile=-{ENVIRONMENT}",
        "LimitNOFILE=65536",
        "# the supervisor starts again what is killed for its memory; without this systemd would end all",
        "OOMPolicy=continue",
        "",
        *_hardening(written),
        # in the user namespace of its own the SQL server has what it needs; a root without one does not
        *([] if user == "root" else ["CapabilityBoundingSet="]),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def _hardening(written: Collection[Path]) -> list[str]:
    """What the services need not have, whose files are in these places.

    The SQL server is confined by namespaces and mounts of its own, so neither RestrictNamespaces nor a filter
    of system calls is here; JVMs make code, so nor is MemoryDenyWriteExecute.
    """

    def is_free(*folders: Path) -> bool:
        return not any(place.is_relative_to(folder) for place in written for folder in folders)

    return [
        "NoNewPrivileges=yes",
        "ProtectSystem=full",
        *(["ProtectHome=read-only"] if is_free(*_HOMES) else []),
        *(["PrivateTmp=yes"] if is_free(*_TEMPORARY) else []),
        "PrivateDevices=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelLogs=yes",
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        "RestrictSUIDSGID=yes",
        "RestrictRealtime=yes",
        "LockPersonality=yes",
        "SystemCallArchitectures=native",
    ]


def _words(words: Iterable[str]) -> str:
    """Of a command: $ begins a variable there, besides."""
    return " ".join(_word(word.replace("$", "$$")) for word in words)


def _word(text: str) -> str:
    """As systemd takes it for one word."""
    escaped = _plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return escaped if escaped and escaped == text and not set(text) & set(" \t';") else f'"{escaped}"'


def _plain(text: object) -> str:
    """% begins what systemd fills in."""
    return str(text).replace("%", "%%")
