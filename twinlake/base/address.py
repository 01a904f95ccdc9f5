"""Addresses of the network as settings name them: `host:port`, an IPv6 one in brackets."""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""What a client of this machine calls a server of ours by."""


def name_of(host: str) -> str:
    """Of the header `Host` of a request, which may have a port: the name that it was asked by."""
    return re.sub(r":\d+$", "", host)


def host_and_port(server: str) -> tuple[str, int]:
    """Of `host:port`; ValueError where there is no port."""
    host, _, port = server.strip().rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether what is sent to the host, a name or an IP address, stays on this machine."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_open(url: str) -> bool:
    """Whether others can read what is sent there."""
    parts = urlsplit(url)
    return parts.scheme != "https" and not is_loopback(parts.hostname or "")


def connection_error(server: str, wait_s: float) -> str:
    """Why nobody answers at `host:port`; empty where somebody listens."""
    try:
        socket.create_connection(host_and_port(server), timeout=wait_s).close()
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""
