"""A server with OpenAI's interface, as far as these tests call the ones of engines: it answers a text with its words.

A text that begins with `hold` is held after the first word, until the client goes or the server ends.
"""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import Popen
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """`key` is asked for below /v1. `health` is the path that needs none, 503 once `core` has ended."""

    key: str
    name: str
    health: str
    core: Popen[bytes] | None = None
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == self.health:
            return self.respond(200 if self.core is None or self.core.poll() is None else 503, {})
        if self.is_refused():
            return None
        return self.respond(200, {"data": [{"id": self.name}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.is_refused():
            return None
        if body["model"] != self.name:
            return self.respond(404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
        if self.path == "/v1/embeddings":
            data = [{"index": place, "embedding": [float(len(text))]} for place, text in enumerate(body["input"])]
            return self.respond(200, {"data": data})
        if body.get("temperature", 0) < 0:
            return self.respond(400, {"error": {"message": "temperature must be non-negative"}})
        is_chat = self.path == "/v1/chat/completions"
        words = body["messages"][-1]["content"] if is_chat else body["prompt"]
        chunks = [f"{word} " for word in words.split()[: body.get("max_tokens")]]
        if body.get("stream"):
            return self.stream(chunks, is_chat=is_chat)
        message: dict[str, Any] = {"role": "assistant", "content": "".join(chunks)}
        if tools := body.get("tools"):
            function = {"name": tools[0]["function"]["name"], "arguments": "{}"}
            message["tool_calls"] = [{"id": "t", "type": "function", "function": function}]
        usage = {"prompt_tokens": 1, "completion_tokens": len(chunks), "total_tokens": len(chunks) + 1}
        return self.respond(200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    def stream(self, chunks: list[str], *, is_chat: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events(chunks, is_chat=is_chat):
            self.wfile.write(f"data: {event}\n\n".encode())
            while chunks[0] == "hold ":
                time.sleep(0.05)
                self.wfile.write(b": held\n\n")
        self.close_connection = True

    def is_refused(self) -> bool:
        if self.headers.get("Authorization") == f"Bearer {self.key}":
            return False
        self.respond(401, {"error": "Unauthorized"})
        return True

    def respond(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def events(chunks: list[str], *, is_chat: bool) -> Iterator[str]:
    for chunk in chunks:
        yield json.dumps({"choices": [{"index": 0, "delta": {"content": chunk}} if is_chat else {"text": chunk}]})
    yield json.dumps({"choices": [{"index": 0, "delta": {}, "text": "", "finish_reason": "stop"}]})
    yield "[DONE]"


def serve(host: str, port: int, **attributes: Any) -> None:
    ThreadingHTTPServer((host, port), type("Served", (Handler,), attributes)).serve_forever()
