#!/usr/bin/env bash
# Gradescope runs this as root, once, when it builds the autograder's image: Python, a C++ compiler, the locked packages.
# Elsewhere: AUTOGRADER names the folder that holds source/, PYTHON an interpreter to use.
set -euo pipefail

base=${AUTOGRADER:-/autograder}
source=$base/source
venv=$base/venv

say() { printf 'setup: %s\n' "$1"; }

fail() {
    printf 'setup: %s\n' "$1" >&2
    exit 1
}

# A Python of at least 3.11 that can make environments, and that other users may run: submissions do not run as root.
good='
import ensurepip, os, subprocess, sys, venv
if sys.version_info < (3, 11):
    sys.exit(1)
if os.geteuid() == 0:
    nobody = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
    subprocess.run([os.path.realpath(sys.executable), "-c", "import json"], check=True, **nobody)
'

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11}; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        if "$candidate" -c "$good" >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null
}

[ -f "$source/requirements.txt" ] || fail "there is no $source/requirements.txt: upload the zip as it was made"

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing Python and a C++ compiler"
    apt-get update -q >/dev/null
    apt ca-certificates g++ python3 python3-venv || say "some packages are missing: going on with what is there"
    for version in 3.13 3.12 3.11; do # on an old system python3 is too old, and one of these may be there
        find_python >/dev/null || apt "python$version" "python$version-venv" || true
    done
fi
python=$(find_python) || fail "no Python 3.11 or later with its venv module that all users may run: choose a newer base image (Ubuntu 22.04 or later)"
command -v g++ >/dev/null || command -v clang++ >/dev/null || say "no C++ compiler: tasks in C++ and Metal will fail"

say "installing the packages of requirements.txt for $("$python" --version)"
"$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$source/requirements.txt"
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
printf '%s\n' "$source/src" >"$packages/course.pth"
"$venv/bin/python" -m compileall -q "$source/src/course" >/dev/null || true

# Submissions run as another user: that one reads the course, writes nothing here, and sees no secret.
chmod -R go-w,a+rX "$source" "$venv"
[ "$(id -u)" != 0 ] || chown -R 0:0 "$source" "$venv"
if [ -d "$source/secret" ]; then
    chmod 700 "$source/secret"
    chmod 600 "$source"/secret/*
fi

"$venv/bin/python" -m course grade --help >/dev/null || fail "the course does not start"
say "ready"
