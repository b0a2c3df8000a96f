"""What `vllm serve` is to these tests: a server beside a process that is its engine's core."""

import os
import subprocess
import sys
from argparse import ArgumentParser

from stand_in_server import serve

if __name__ == "__main__":
    parser = ArgumentParser("vllm serve")
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model")
    for name in ("host", "served-model-name", "dtype", "middleware", "chat-template"):
        parser.add_argument(f"--{name}")
    for name in ("port", "max-model-len"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("disable-uvicorn-access-log", "enforce-eager"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    if not os.path.isdir(given.model):
        sys.exit(f"OSError: there is no model {given.model}")
    if given.chat_template and not os.path.isfile(given.chat_template):
        sys.exit(f"ValueError: there is no chat template {given.chat_template}")
    core = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    serve(
        given.host,
        given.port,
        key=os.environ["VLLM_API_KEY"],
        name=given.served_model_name,
        health="/health",
        core=core,
    )
