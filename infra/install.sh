#!/bin/sh
# Makes .venv with every package of these extras as constraints.txt pins it; safe to interrupt and to run again.
# `make install` calls it with those of the tests, the image without them: docs/install.md tells the extras.
set -eu
cd "$(dirname "$0")/.."
extras=${1:-server,airflow,hdfs,dev}
uv_version=$(sed -n 's/^uv==//p' constraints.txt)
stamp=.venv/.installed

supported() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

find_python() {
    usual="python3 python3.13 python3.12 python3.11 /usr/bin/python3 /usr/local/bin/python3.1[123]
        /opt/homebrew/bin/python3.1[123] $HOME/.pyenv/versions/3.1[123].*/bin/python3"
    for candidate in ${PYTHON:-$usual}; do
        if command -v "$candidate" >/dev/null 2>&1 && supported "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    {
        found=$("${PYTHON:-python3}" --version 2>/dev/null || echo "no ${PYTHON:-python3} at all")
        echo "twinlake needs Python 3.11, 3.12 or 3.13 with venv; found: $found."
        if command -v apt-get >/dev/null 2>&1; then
            echo "Install it with:  sudo apt-get install python3 python3-venv"
            echo "(older releases:  sudo apt-get install python3.11 python3.11-venv)"
        elif command -v dnf >/dev/null 2>&1; then
            echo "Install it with:  sudo dnf install python3.12"
        elif command -v brew >/dev/null 2>&1; then
            echo "Install it with:  brew install python@3.12"
        else
            echo "Install it with your system's package manager, then run make again."
        fi
        echo "If it is in an unusual place:  make install PYTHON=/path/to/python3.12"
    } >&2
    return 1
}

retry() {
    for pause in 2 5 10 0; do
        "$@" && return 0
        [ "$pause" -eq 0 ] && break
        echo "   again in $pause s: $*" >&2
        sleep "$pause"
    done
    return 1
}

python=$(find_python)
"$python" twinlake/setup/java.py >/dev/null

rm -f "$stamp"
if ! { [ -x .venv/bin/python ] && supported .venv/bin/python && .venv/bin/python -m pip --version; } >/dev/null 2>&1; then
    echo ">> virtual environment in .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi
if [ "$(.venv/bin/uv --version 2>/dev/null | cut -d' ' -f2)" != "$uv_version" ]; then
    echo ">> uv $uv_version"
    retry .venv/bin/python -m pip install --quiet "uv==$uv_version" || echo ">> no uv, pip does it" >&2
fi
echo ">> packages pinned in constraints.txt"
if [ -x .venv/bin/uv ] && retry .venv/bin/uv pip install --python .venv/bin/python \
    --compile-bytecode -c constraints.txt -e ".[$extras]"; then # compiled once here, not by each of the processes
    :
else
    retry .venv/bin/python -m pip install -c constraints.txt -e ".[$extras]"
fi
# isolated, as from any other folder: in this one the project's own packages would be found uninstalled
.venv/bin/python -I -c 'import airflow, confluent_kafka, delta, fastapi, pyspark, twinlake' >/dev/null
touch "$stamp"
