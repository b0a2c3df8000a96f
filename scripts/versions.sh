#!/usr/bin/env bash
# Runs tests with the Pythons and dependencies that are supported, beside the one of .venv.
#
#   scripts/versions.sh [pythons]   with every other Python from 3.11 on that is here: what Python itself could change,
#                                   the event loop, sockets, TLS, SQLite, processes, the command line
#   scripts/versions.sh [oldest]    with the oldest allowed version of each dependency, the extra grpc's too: the room
#                                   tests of what calls libraries, and the client and servers that need no OpenSearch
#
# Without a word both. The environments lie in .venvs/ of the checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
parallel=(--numprocesses auto --dist loadfile)

make_environment() {  # NAME PYTHON PIP_ARGUMENT...
    local name=$1 python=$2; shift 2
    [ ! -f ".venvs/$name/installed" ] || [ pyproject.toml -nt ".venvs/$name/installed" ] || return 0
    rm -rf ".venvs/$name"
    "$python" -m venv ".venvs/$name"
    ".venvs/$name/bin/pip" install --quiet --disable-pip-version-check --editable '.[test]' "$@"
    touch ".venvs/$name/installed"
}

minor() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true; }

pythons() {
    local tried=" $(minor .venv/bin/python) " python version
    for python in python3.{11..20} "$HOME"/.pyenv/versions/3.*/bin/python3; do
        command -v "$python" >/dev/null || continue
        version=$(minor "$python")
        case $tried in *" $version "*) continue ;; esac
        [ "${version#3.}" -ge 11 ] 2>/dev/null && "$python" -c 'import venv, ensurepip' 2>/dev/null || continue
        tried="$tried$version "
        echo "== Python $version"
        make_environment "py$version" "$python"
        ".venvs/py$version/bin/pytest" "${parallel[@]}" rest_handlers/tests plugin/tests extensions/tests
    done
}

oldest() {
    echo "== the oldest dependencies"
    mkdir -p .venvs
    .venv/bin/python scripts/oldest.py >.venvs/oldest.txt
    make_environment oldest "${PYTHON:-.venv/bin/python}" --constraint .venvs/oldest.txt
    # The oldest httpx leaves sockets of closed clients to the garbage collector.
    CI='' .venvs/oldest/bin/pytest "${parallel[@]}" -W ignore::pytest.PytestUnraisableExceptionWarning \
        connectors/tests rest_handlers/tests plugin/tests extensions/tests integration_tests/client integration_tests/server/grpc_port \
        integration_tests/server/test_workers.py integration_tests/server/v2
}

case "${1:-all}" in
    pythons) pythons ;;
    oldest) oldest ;;
    all) pythons; oldest ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
