#!/usr/bin/env bash
# Installs real servers from PyPI: MLServer and the LiteLLM proxy, which the tests put behind the sidecar, and the clients
# of MLServer, Triton and KServe, and of OpenAI's and Anthropic's APIs, which they put in front of it.
#
#   scripts/peers.sh                   install what is not there yet, each into an environment of its own
#   scripts/peers.sh install mlserver  install that one alone (or litellm, clients, chat_clients)
#   scripts/peers.sh where             print the folder
#
# They lie in .peers/ of the checkout; MLSTREAM_PEERS names another folder, whose NAME/bin is used as it is.
# PYTHON is the interpreter that they get (MLServer 1.7 needs 3.9 to 3.12).
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
base=${MLSTREAM_PEERS:-$checkout/.peers}

install() {  # NAME REQUIREMENT...
    local name=$1; shift
    if [ -x "$base/$name/bin/python" ]; then
        [ -z "${MLSTREAM_PEERS:-}" ] && [ "$(cat "$base/$name/requirements" 2>/dev/null)" != "$*" ] || return 0
    fi
    echo "Installing $name into $base/$name (once) ..." >&2
    "${PYTHON:-python3}" -m venv "$base/$name"
    "$base/$name/bin/pip" install --quiet --no-compile --disable-pip-version-check "$@"
    echo "$*" >"$base/$name/requirements"
}

case ${1:-install} in
    where) echo "$base" ;;
    install)
        [ "${2:-mlserver}" != mlserver ] || install mlserver 'mlserver==1.7.1' 'httpx>=0.27' 'httpx-sse>=0.4'
        [ "${2:-clients}" != clients ] || install clients 'tritonclient[grpc,http]==2.73.0' 'kserve==0.21.0'
        # In versions that go together, and each with its dependencies named where pip would look long for one:
        # LlamaIndex takes no later openai. LiteLLM's tools need mcp.
        [ "${2:-chat_clients}" != chat_clients ] || install chat_clients 'openai~=2.54' 'anthropic~=2.12' \
            'langchain-core==1.7.2' 'langchain-openai==1.7.3' 'langchain-anthropic==1.7.7' 'instructor==1.17.0' \
            'llama-index-core==0.14.25' 'llama-index-llms-openai-like==0.8.1' 'litellm==1.106.2' 'mcp~=2.3' 'httpx~=0.28'
        [ "${2:-litellm}" != litellm ] || install litellm 'litellm[proxy]==1.106.2'
        ;;
    *) echo "usage: scripts/peers.sh [install [mlserver|litellm|clients|chat_clients]|where]" >&2; exit 2 ;;
esac
