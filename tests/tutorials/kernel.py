"""What runs a notebook's cells, without a browser: one after the other, in one namespace.

It is a process of its own, which is this file as a script. A line of JSON goes in, the cell; one comes out,
what it has shown.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import traceback
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any


class Kernel:
    """It runs in `folder`."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._python = subprocess.Popen(
            [sys.executable, __file__], cwd=folder, env=environ, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, code: str) -> str:
        """What the cell shows: what it prints, and the value of its last line."""
        assert self._python.stdin and self._python.stdout
        self._python.stdin.write(json.dumps(code) + "\n")
        self._python.stdin.flush()
        failed, shown = json.loads(self._python.stdout.readline())
        assert not failed, f"{code}\n{shown}"
        return str(shown)

    def close(self) -> None:
        """Ends it, also where a cell has not ended."""
        assert self._python.stdin
        self._python.stdin.close()
        try:
            self._python.wait(10)
        except subprocess.TimeoutExpired:
            self._python.kill()
            self._python.wait()


def run(code: str, namespace: dict[str, Any]) -> tuple[bool, str]:
    """(whether it failed, what it has shown)."""
    shown = StringIO()
    with redirect_stdout(shown), redirect_stderr(shown):
        try:
            lines = ast.parse(code).body
            last = lines.pop() if lines and isinstance(lines[-1], ast.Expr) else None
            exec(compile(ast.Module(lines, []), "cell", "exec"), namespace)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
                if value is not None:
                    print(repr(value))
        except Exception:
            traceback.print_exc()
            return True, shown.getvalue()
    return False, shown.getvalue()


if __name__ == "__main__":
    names: dict[str, Any] = {"__name__": "__main__"}
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line), names)), flush=True)
