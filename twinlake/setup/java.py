"""Finds the one Java that Spark and the broker use: a JDK or JRE 17 or 21.

Standard library only: the installer runs this file before the virtual environment exists.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

SUPPORTED = (17, 21)
_USUAL_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
)
_HOME_FOLDERS = (".sdkman/candidates/java/*", ".jdks/*")


class NoJava(Exception):
    """No supported Java; the text names what was found and the command that installs one."""


def find_java(environ: Mapping[str, str]) -> Path:
    """The JAVA_HOME to use: JAVA_HOME, then PATH, then the usual folders; raises NoJava."""
    seen: dict[Path, int | None] = {}
    for home in _candidates(environ):
        if home in seen:
            continue
        seen[home] = major_version(home)
        if seen[home] in SUPPORTED:
            return home
    found = ", ".join(f"Java {major} in {home}" for home, major in seen.items() if major) or "no Java at all"
    raise NoJava(
        f"twinlake needs Java 17 or 21; found: {found}.\n"
        f"Install it with:  {_install_command()}\n"
        "If it is in an unusual place:  export JAVA_HOME=/path/to/it"
    )


def major_version(home: Path) -> int | None:
    """The feature release of the Java in `home` (17, 21, ...), None when there is none that runs."""
    if not (home / "bin" / "java").is_file():
        return None
    try:
        text = (home / "release").read_text(errors="replace")
    except OSError:
        text = ""
    if not (match := re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)):
        try:
            command = [str(home / "bin" / "java"), "-version"]
            text = subprocess.run(command, capture_output=True, text=True, timeout=20).stderr
        except (OSError, subprocess.TimeoutExpired):
            return None
        match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"]).expanduser()
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for pattern in _USUAL_FOLDERS:
        yield from sorted(path.resolve() for path in Path("/").glob(pattern.lstrip("/")))
    if environ.get("HOME"):
        for pattern in _HOME_FOLDERS:
            yield from sorted(path.resolve() for path in Path(environ["HOME"]).glob(pattern))


def _install_command() -> str:
    if platform.system() == "Darwin":
        return "brew install openjdk@21"
    if shutil.which("apt-get"):
        return "sudo apt-get install openjdk-17-jre-headless   (or openjdk-21-jre-headless)"
    if shutil.which("dnf"):
        return "sudo dnf install java-21-openjdk-headless"
    if shutil.which("pacman"):
        return "sudo pacman -S jre21-openjdk-headless"
    if shutil.which("apk"):
        return "sudo apk add openjdk21-jre-headless"
    return "your system's package manager (any OpenJDK 17 or 21)"


if __name__ == "__main__":
    try:
        print(find_java(os.environ))
    except NoJava as error:
        sys.exit(str(error))
