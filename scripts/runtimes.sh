#!/usr/bin/env bash
# Runs the shipped runtimes' tests with transformers and llama.cpp themselves, on tiny models that the tests make.
#
# They are installed into .runtimes/ of the checkout, once: 5 GB (PyPI's torch comes with CUDA), and a quarter of an hour,
# for llama-cpp-python is compiled. vLLM is not: its engine needs a GPU; its tests run with their stand-in.
# Arguments go to pytest. PYTHON is the interpreter.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ ! -f .runtimes/installed ]; then
    echo "Installing transformers, torch and llama-cpp-python into .runtimes (once) ..." >&2
    "${PYTHON:-python3}" -m venv .runtimes
    .runtimes/bin/pip install --quiet --disable-pip-version-check --editable '.[test,huggingface,llama-cpp]' gguf
    touch .runtimes/installed
fi
.runtimes/bin/pip list --disable-pip-version-check 2>/dev/null | grep -E '^(llama_cpp_python|mlserver|torch|transformers) '
# The warnings are those of other packages.
exec .runtimes/bin/pytest extensions/tests/runtimes/shipped --override-ini=filterwarnings=default --timeout=300 "$@"
