"""What a provider takes and how it responds: a server that checks every request closely.

A request that the real provider would refuse, or would respond to in another way, gets a 400 with what is wrong with
it, which ends the test.
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
from integration_tests.support.fake_provider import Request, Script, chunked_stream, json_response

from tests.providers.recorded_streams import SECRET, STREAMS, Exchange, Recorded, StreamedCall
from tests.providers.recorded_streams import Call as Whole

PIECE_BYTES = 61

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
class Dialect:
    """`prediction` is the body sent to the sidecar, `predicted` each result's `output`.

    `headers` have to arrive as they stand here; `aws` is the service that an AWS request is signed for. `own`: the
    parameters of the same question in the provider's own form.
    """

    wholes: tuple[Whole, ...]
    prediction: Mapping[str, Any]
    predicted: list[Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    streamed: StreamedCall | None = None
    aws: str | None = None
    region: str = "us-east-1"
    own: Mapping[str, Any] | None = None

    def script(self, request: Request) -> Script:
        """The script of a request, for FakeProvider."""
        expected: list[Whole | StreamedCall] = [*self.wholes, *([self.streamed] if self.streamed else [])]
        faults = min((self._faults(request, call) for call in expected), key=len)
        if faults:
            return json_response({"error": {"message": "; ".join(faults)}}, 400)
        call = next(call for call in expected if not self._faults(request, call))
        if isinstance(call, Whole):
            return json_response(call.response)
        data = call.recorded.data
        pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
        return chunked_stream(pieces, content_type=_CONTENT_TYPES[call.framing])

    def _faults(self, request: Request, call: Whole | StreamedCall) -> list[str]:
        expected = {"method": "POST", "path": call.path, "body": call.body, "content-type": "application/json"}
        try:
            body = json.loads(request.body)
        except ValueError:
            body = "not JSON"
        received = {"method": request.method, "path": request.path, "body": body}
        needed = {**self.headers, **(call.headers if isinstance(call, StreamedCall) else {})}
        names = {"content-type", *(name.lower() for name in needed)}
        received |= {name: request.headers.get(name) for name in names}
        expected |= {name.lower(): value for name, value in needed.items()}
        faults = [
            f"{name} is {received[name]!r}, not {value!r}"
            for name, value in expected.items()
            if received[name] != value
        ]
        if self.aws is not None:
            faults += signature_faults(request, self.aws, self.region)
        if SECRET in request.path or SECRET.encode() in request.body:
            faults.append("a secret stands outside of the headers")
        return faults


def signature_faults(request: Request, service: str, region: str) -> list[str]:
    """What AWS would find wrong with the signature, by botocore's own signer over the request as it arrived."""
    match = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if match is None:
        return ["no AWS signature"]
    faults = []
    if (match["key"], match["region"], match["service"]) != (SECRET, region, service):
        faults.append(f"signed for {match['service']} in {match['region']}")
    names = match["names"].split(";")
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
    """How a dialect's stream differs from its whole response: additions to body and headers, its path, what comes."""

    recorded: str | Recorded
    framing: str = "sse"
    body: Mapping[str, Any] = field(default_factory=dict)
    path: Callable[[str], str] = str
    headers: dict[str, str] = field(default_factory=dict)

    def of(self, path: str, body: Mapping[str, Any]) -> StreamedCall:
        """The streamed form of a call."""
        recorded = STREAMS[self.recorded] if isinstance(self.recorded, str) else self.recorded
        return StreamedCall(self.path(path), {**body, **self.body}, self.headers, recorded, self.framing)


def dialect_of(exchange: Exchange) -> Dialect:
    """The provider of a recorded exchange."""
    responses = [call.response for call in exchange.calls]
    predicted = mapped(responses[0]) if exchange.predicted is None else exchange.predicted
    if exchange.texts:
        tensors = [_tensor(text) for text in exchange.texts]
        predicted = [tensors] if len(responses) == 1 else [[tensor] for tensor in tensors]
    return Dialect(
        tuple(exchange.calls),
        exchange.prediction,
        predicted,
        exchange.headers,
        exchange.streamed,
        exchange.aws,
        own=exchange.own,
    )


def mapped(response: Any) -> list[Any]:
    """What a prediction without a post_process_function gives."""
    return [[{"name": "response", "dataAsMap": response}]]


def _tensor(text: str) -> dict[str, Any]:
    return {"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [2], "data": vector(text)}


def vector(text: str) -> list[float]:
    """What the recorded providers make of a text."""
    return [float(len(text)), 0.5]


def bearer(secret: str = SECRET) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
