#!/usr/bin/env bash
# Installs OpenSearch's client for JavaScript from npm for the tests, as Dashboards has it and of release 3 (as the
# package opensearch-js-3); prints the folder of its modules.
#
# It lies in .opensearch-js/ of the checkout (OPENSEARCH_JS_DIR changes that), in the versions of
# scripts/opensearch_js/package-lock.json, and is installed again when that changes.
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
locked=$checkout/scripts/opensearch_js
folder=${OPENSEARCH_JS_DIR:-$checkout/.opensearch-js}

if ! cmp -s "$locked/package-lock.json" "$folder/installed"; then
    command -v npm >/dev/null || { echo "opensearch_js.sh: Node.js with npm is needed (Debian: nodejs npm)" >&2; exit 1; }
    echo "Installing opensearch-js into $folder (once) ..." >&2
    mkdir -p "$folder"
    cp "$locked"/package*.json "$folder"
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
    cp "$locked/package-lock.json" "$folder/installed"
fi
echo "$folder/node_modules"
