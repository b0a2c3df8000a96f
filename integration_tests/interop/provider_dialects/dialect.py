"""What a provider takes and what it answers: a server that looks closely at every request.

A request that the real provider would refuse, or would answer in another way, is answered 400 with what is wrong
with it, which ends the test.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from integration_tests.support.fake_provider import Request, Script, chunked_stream, json_answer

from tests.providers.recorded_streams import RECORDED, Recorded

QUESTION = 'What is "the meaning" of life?\n世界'
SECRET = "sk-secret-1234567890"  # the value of every credential
PIECE_BYTES = 61

_RECORDED = {recorded.name: recorded for recorded in RECORDED}
_CONTENT_TYPES = {
    "sse": "text/event-stream",
    "ndjson": "application/x-ndjson",
    "aws": "application/vnd.amazon.eventstream",
}
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request, "
    r"SignedHeaders=(?P<names>[a-z0-9;-]+), Signature=[0-9a-f]{64}"
)


@dataclass(frozen=True, slots=True)
class Whole:
    """A call that is answered in one piece: what the provider gets and gives."""

    path: str
    body: Any
    answer: Any


@dataclass(frozen=True, slots=True)
class Streamed:
    """A call that is answered in pieces. `framing`: sse, ndjson or aws."""

    path: str
    body: Any
    recorded: Recorded
    framing: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """`asked` is the prediction's body, `predicted` each result's `output`.

    `headers` have to come as they stand here; `aws` is the service that an AWS request is signed for. `own`: the
    parameters of the same question in the provider's own form.
    """

    wholes: tuple[Whole, ...]
    asked: Mapping[str, Any]
    predicted: list[Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    streamed: Streamed | None = None
    aws: str | None = None
    region: str = "us-east-1"
    own: Mapping[str, Any] | None = None

    def script(self, request: Request) -> Script:
        """The answer to a request; FakeProvider's way to ask."""
        expected: list[Whole | Streamed] = [*self.wholes, *([self.streamed] if self.streamed else [])]
        faults = min((self._faults(request, call) for call in expected), key=len)
        if faults:
            return json_answer({"error": {"message": "; ".join(faults)}}, 400)
        found = next(call for call in expected if not self._faults(request, call))
        if isinstance(found, Whole):
            return json_answer(found.answer)
        data = found.recorded.data
        pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
        return chunked_stream(pieces, content_type=_CONTENT_TYPES[found.framing])

    def _faults(self, request: Request, call: Whole | Streamed) -> list[str]:
        expected = {"method": "POST", "path": call.path, "body": call.body, "content-type": "application/json"}
        try:
            body = json.loads(request.body)
        except ValueError:
            body = "not JSON"
        got = {"method": request.method, "path": request.path, "body": body}
        names = {"content-type", *(name.lower() for name in self.headers)}
        got |= {name: request.headers.get(name) for name in names}
        expected |= {name.lower(): value for name, value in self.headers.items()}
        faults = [f"{name} is {got[name]!r}, not {value!r}" for name, value in expected.items() if got[name] != value]
        if self.aws is not None:
            faults += signature_faults(request, self.aws, self.region)
        if SECRET in request.path or SECRET.encode() in request.body:
            faults.append("a secret stands outside of the headers")
        return faults


def signature_faults(request: Request, service: str, region: str) -> list[str]:
    """What AWS would find wrong with the signature, by botocore's own signer over the request as it arrived."""
    found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if found is None:
        return ["no AWS signature"]
    faults = []
    if (found["key"], found["region"], found["service"]) != (SECRET, region, service):
        faults.append(f"signed for {found['service']} in {found['region']}")
    names = found["names"].split(";")
    if not {"host", "x-amz-date", "content-type"} <= set(names):
        faults.append(f"only {names} are signed")
    if request.headers.get("x-amz-content-sha256", _hash(request)) != _hash(request):
        faults.append("x-amz-content-sha256 is not the body's hash")
    if request.headers.get("x-amz-security-token", SECRET) != SECRET:
        faults.append("another session token")
    signer = SigV4Auth(Credentials(SECRET, SECRET), service, region)
    url = f"http://{request.headers['host']}{request.path}"
    headers = {name: request.headers[name] for name in names}
    theirs = AWSRequest(request.method, url, headers=headers, data=request.body)
    theirs.context["timestamp"] = request.headers["x-amz-date"]
    text = signer.string_to_sign(theirs, signer.canonical_request(theirs))
    if not request.headers["authorization"].endswith(f"Signature={signer.signature(text, theirs)}"):
        faults.append("the signature is another")
    return faults


def _hash(request: Request) -> str:
    return sha256(request.body).hexdigest()


@dataclass(frozen=True, slots=True)
class Way:
    """How a dialect's stream differs from its whole answer: what is added to the body, where it goes, what comes."""

    recorded: str | Recorded
    framing: str = "sse"
    body: Mapping[str, Any] = field(default_factory=dict)
    path: Callable[[str], str] = str

    def of(self, path: str, body: Mapping[str, Any]) -> Streamed:
        """The streamed form of a call."""
        recorded = _RECORDED[self.recorded] if isinstance(self.recorded, str) else self.recorded
        return Streamed(self.path(path), {**body, **self.body}, recorded, self.framing)


def chat(
    path: str, body: Mapping[str, Any], answer: Any, way: Way | None, own: Mapping[str, Any] | None = None, **more: Any
) -> Dialect:
    """A provider that answers `inputs`; without `way` in one piece only."""
    asked = {"parameters": {"inputs": QUESTION}}
    streamed = None if way is None else way.of(path, body)
    return Dialect((Whole(path, body, answer),), asked, mapped(answer), streamed=streamed, own=own, **more)


def mapped(answer: Any) -> list[Any]:
    """What a prediction without a post_process_function gives."""
    return [[{"name": "response", "dataAsMap": answer}]]


def vectors(path: str, bodies: list[Any], answers: list[Any], texts: list[str], **more: Any) -> Dialect:
    """A provider of vectors, called with `texts`; every vector that it gives is `vector(text)`."""
    wholes = tuple(Whole(path, body, answer) for body, answer in zip(bodies, answers, strict=True))
    tensors = [
        {"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [2], "data": vector(text)} for text in texts
    ]
    predicted = [tensors] if len(wholes) == 1 else [[tensor] for tensor in tensors]
    return Dialect(wholes, {"text_docs": texts}, predicted, **more)


def vector(text: str) -> list[float]:
    return [float(len(text)), 0.5]


def bearer(secret: str = SECRET) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
