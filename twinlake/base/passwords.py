"""Passwords: the line an endpoint gets instead of the password itself, and whether a password matches it.

`user:iterations:salt:hash`, the last two in hexadecimal; the hash is PBKDF2 with HMAC-SHA-256 (RFC 8018).
`twinlake/java/twinlake/reading/Passwords.java` reads the same line for JDBC.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

ITERATIONS = 20_000
"""A few milliseconds each; the generated passwords have 192 random bits and need no more."""


def hashed(user: str, password: str) -> str:
    """The line for one user, with a salt of its own."""
    salt = secrets.token_bytes(16)
    return f"{user}:{ITERATIONS}:{salt.hex()}:{_hash(password, salt, ITERATIONS).hex()}\n"


def verify(line: str, user: str, password: str) -> bool:
    """Whether it is this user's line and password; takes as long for a wrong one."""
    expected_user, iterations, salt, expected = line.strip().split(":")
    found = _hash(password, bytes.fromhex(salt), int(iterations))
    same = hmac.compare_digest(found, bytes.fromhex(expected))
    return hmac.compare_digest(user.encode(), expected_user.encode()) and same


def _hash(password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
