#!/usr/bin/env bash
# Tries the extension of examples/echo_extension in an environment where it is installed, whose folder is given: its
# command, setting, route, provider and observer, with a server of its own.
set -euo pipefail
cd "$1"  # so that nothing of the checkout is imported
looks=0
unset PYTHONPATH "${!MLSTREAM_@}"

expect() {  # what, the value that there is, the pattern that it must match
    [[ $2 == $3 ]] || { printf 'The %s of the example extension: expected %s, found %s\n' "$1" "$3" "$2" >&2; exit 1; }
}

say() { curl -sS --fail-with-body -H 'Content-Type: application/json' "$MLSTREAM_URL/_plugins/_ml/$1" "${@:2}"; }

expect "listing where nothing names it" "$(bin/opensearch-ml-stream extensions)" *$'\necho\toff\t'*'Not loaded'*
echo 'opensearch_ml_stream.extensions.echo: true' >config.yml
export MLSTREAM_CONFIG=$PWD/config.yml
expect "listing" "$(bin/opensearch-ml-stream extensions)" *$'\necho\ton\topensearch-ml-stream-echo '*

bin/opensearch-ml-stream serve --port 0 --store "sqlite:///$PWD/store.db" 2>server.log >&2 &
server=$!
trap 'kill $server; wait $server || true' EXIT
until grep -q ' serves' server.log; do
    kill -0 $server || { cat server.log >&2; exit 1; }
    sleep 0.2
done
MLSTREAM_URL=$(grep -o 'http://127[^ ]*' server.log | head -1)
export MLSTREAM_URL

expect route "$(say echo -d '{"prompt": "deep sea"}')" '{"text":"deep sea"}'
expect setting "$(bin/opensearch-ml-stream settings)" *$'opensearch_ml_stream.echo.words_per_second\t20\t'*
say _settings -X PUT -d '{"opensearch_ml_stream.echo.words_per_second": 1000}' >/dev/null
expect "changed setting" "$(say '_settings?flat_settings=true')" *'"opensearch_ml_stream.echo.words_per_second":"1000'*
bin/opensearch-ml-stream endpoints allow "$MLSTREAM_URL" >/dev/null
model=$(bin/opensearch-ml-stream echo)
expect command "$model" '????????????????????'
expect provider "$(bin/opensearch-ml-stream predict "$model" --stream 'Why is the sky blue?' 2>/dev/null)" 'Why is the sky blue[?]'
until [[ $(say echo) == *'"ended"'* ]] || ((++looks > 50)); do sleep 0.1; done  # told once the response has ended
expect observer "$(say echo)" '{"admitted":1,"first_chunk":1,"ended":1}'
