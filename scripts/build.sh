#!/usr/bin/env bash
# Builds the source distribution, a wheel from it, and tries the wheel in an environment of its own, with the extension
# of examples/ installed beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf dist
.venv/bin/python -m build --outdir dist . >dist.log 2>&1 || { cat dist.log >&2; rm -f dist.log; exit 1; }
rm -f dist.log
.venv/bin/check-wheel-contents dist/*.whl
trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT
.venv/bin/python -m venv "$trial"
"$trial/bin/pip" install --quiet --disable-pip-version-check dist/*.whl
cd "$trial"  # so that nothing of the checkout is imported
bin/opensearch-ml-stream --version
bin/opensearch-ml-stream blueprints list >blueprints.txt  # not into a pipe: grep -q closes it at the first match
grep -q '^openai-chat' blueprints.txt || { echo "the wheel lacks the blueprints" >&2; exit 1; }
ls lib/python*/site-packages/opensearch_ml_stream/extensions/generate_stream/demo/demo.{html,css,js} >/dev/null
bin/python -m opensearch_ml_stream.plugin --version >/dev/null
bin/python -W error -c 'from opensearch_ml_stream.client import AsyncStreamingMLClient, StreamingMLClient, async_predict_stream, predict_stream'
cd "$OLDPWD"
.venv/bin/python -m build --wheel --outdir "$trial/example" examples/echo_extension >"$trial/example.log" 2>&1 || { cat "$trial/example.log" >&2; exit 1; }
"$trial/bin/pip" install --quiet --disable-pip-version-check "$trial"/example/*.whl
scripts/try_extension.sh "$trial"
echo "$(ls dist | tr '\n' ' ')are good"
