"""How a client gets into the schema registry: its address, and what it shows of itself."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from twinlake.base.errors import UsageError
from twinlake.base.files import named_secret
from twinlake.config.sections import Registry


@dataclass(frozen=True, kw_only=True)
class RegistryAccess:
    """One client of one registry. No `repr` shows the password."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    """Whom to trust (PEM); without one, those whom this system trusts."""

    @classmethod
    def of(cls, url: str, told: Mapping[str, str]) -> RegistryAccess:
        """What `services.json` tells; `password_file` is read now, so a new password holds at once."""
        password = told.get("password", "")
        if file := told.get("password_file"):
            password = named_secret(Path(file), section="registry")
        ca_file = told.get("ca_file", "")
        return cls(url=url, username=told.get("username", ""), password=password, ca_file=ca_file)

    @property
    def who(self) -> str:
        """The name that the registry knows this client by."""
        return f"user {self.username!r}" if self.username else "a client without a name"

    @property
    def login(self) -> tuple[str, str] | None:
        """User and password, None for a registry that asks for none."""
        return (self.username, self.password) if self.username else None

    def trust(self) -> ssl.SSLContext:
        """Whom to trust where the address is one of TLS; UsageError where the file holds no certificates."""
        try:
            return ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as error:  # ssl.SSLError is one
            raise UsageError(
                f"{self.ca_file} holds no certificates", str(error), "name a PEM file with ca_file"
            ) from error


def given(registry: Registry) -> dict[str, str]:
    """What `services.json` tells of a registry of one's own; of a secret in a file, where."""
    told: dict[str, str | Path | None] = {
        "username": registry.username, "ca_file": registry.ca_file, "password_file": registry.password_file,
        "password": "" if registry.password_file else registry.password,
    }  # fmt: skip
    return {name: str(value) for name, value in told.items() if value}
