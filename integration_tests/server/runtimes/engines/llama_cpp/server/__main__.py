"""What `python -m llama_cpp.server` is to these tests."""

import os
import sys
from argparse import ArgumentParser

from stand_in_server import serve

if __name__ == "__main__":
    parser = ArgumentParser("llama_cpp.server")
    for name in ("model", "model_alias", "interrupt_requests", "n_ctx", "logits_all", "verbose", "embedding"):
        parser.add_argument(f"--{name}")
    given = parser.parse_args()
    if given.interrupt_requests != "false":
        sys.exit("ValueError: a stream would be interrupted for the next")
    serve(
        os.environ["HOST"],
        int(os.environ["PORT"]),
        key=os.environ["API_KEY"],
        name=given.model_alias,
        health="/openapi.json",
    )
