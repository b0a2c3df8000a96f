"""A process of a model that follows a script: `python scripted_program.py NAME FD`.

`script` in the model's settings is what it does, one word after the other; `marks` a folder with a file for each start.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

connection = socket.socket(fileno=int(sys.argv[2]))
lines = connection.makefile("r")
introduction = json.loads(lines.readline())
settings = introduction["settings"]
marks = Path(settings["marks"])
number = len(list(marks.iterdir()))


def mark(name: str, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    being_written = marks.with_name(f"{marks.name}-{os.getpid()}-{name}")
    being_written.write_text(text)
    being_written.rename(marks / name)


mark(f"{number}", json.dumps({"environment": dict(os.environ), **introduction}))
scripts = settings["scripts"]
HANDLERS = [{"method": "POST", "path": "/count"}]


def say(event: str, **fields: object) -> None:
    connection.sendall(json.dumps({"event": event, **fields}).encode() + b"\n")


for word in scripts[min(number, len(scripts) - 1)].split():
    match word:
        case "ready":
            say("ready", inputs=[], outputs=[], platform="test", version=None, handlers=HANDLERS)
        case "failed":
            say("failed", reason="No module named 'x'")
        case "busy" | "idle":
            say("figures", in_flight=int(word == "busy"), calls=3, failures=1, batches=0, batched_requests=0)
        case "nonsense":
            connection.sendall(b"no JSON\n")
        case "child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            mark("child", str(child.pid))
        case "trouble":
            say("task_failed", error="KeyError")
        case "newer":
            say("something newer")
        case "stay":
            lines.read()
        case "unload":
            mark("unloading", "")
            while not (marks.parent / "may unload").exists():
                time.sleep(0.01)
            mark("unloaded", "")
        case "hang":
            time.sleep(600)
        case "end":
            sys.exit(3)
        case other:
            sys.exit(f"no such word: {other}")
