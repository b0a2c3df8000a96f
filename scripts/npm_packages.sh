#!/usr/bin/env bash
# Installs packages from npm for the tests, in the versions of a package-lock.json; prints the folder of their modules.
#
#   scripts/npm_packages.sh opensearch_js  OpenSearch's client, as Dashboards has it and of release 3 (as opensearch-js-3)
#   scripts/npm_packages.sh chat_clients   clients of OpenAI's and Anthropic's APIs
#
# They lie in .peers/npm/NAME of the checkout (MLSTREAM_PEERS names another folder), as scripts/NAME/package-lock.json has
# them, and are installed again when that changes.
set -euo pipefail

name=${1:?usage: scripts/npm_packages.sh opensearch_js|chat_clients}
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
locked=$checkout/scripts/$name
folder=${MLSTREAM_PEERS:-$checkout/.peers}/npm/$name

if ! cmp -s "$locked/package-lock.json" "$folder/installed"; then
    command -v npm >/dev/null || { echo "npm_packages.sh: Node.js with npm is needed (Debian: nodejs npm)" >&2; exit 1; }
    echo "Installing $name into $folder (once) ..." >&2
    mkdir -p "$folder"
    cp "$locked"/package*.json "$folder"
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
    cp "$locked/package-lock.json" "$folder/installed"
fi
echo "$folder/node_modules"
