"""OpenSearch's own classes, from the package opensearch-protobufs, against the gRPC port."""

import json
import re
from pathlib import Path

import pytest
from integration_tests.server.grpc_port.ml_service import opensearch_protobufs
from integration_tests.server.grpc_port.ml_service.grpc_ports import Port
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream

from opensearch_ml_stream.extensions.ml_service.ml_service import PROTOS
from opensearch_ml_stream.plugin.grpc_port.messages import read_files

pytestmark = pytest.mark.peers  # the package comes from PyPI

PAGE = Path(__file__).parents[4] / "docs" / "grpc.md"

DESCRIBE = """
import json, sys
from google.protobuf import descriptor_pool
from opensearch.protobufs.services import ml_service_pb2

def named(message):
    return message and message.full_name

pool = descriptor_pool.Default()
messages = {
    name: {field.name: [field.number, field.type, named(field.message_type)] for field in
           pool.FindMessageTypeByName(name).fields}
    for name in sys.argv[1:]
}
(service,) = ml_service_pb2.DESCRIPTOR.services_by_name.values()
methods = {method.name: [named(method.input_type), named(method.output_type), method.server_streaming]
           for method in service.methods}
print(json.dumps([messages, service.full_name, methods]))
"""

READ_AS_OPENSEARCH_PY_DOES = """
import json, sys
import grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from opensearch.protobufs.schemas import MlPredictModelStreamRequest
from opensearch.protobufs.services import MLServiceStub

body = {"parameters": json.loads(sys.argv[3])}
fields = {"model_id": sys.argv[2], "ml_predict_model_stream_request_body": body}
request = ParseDict(fields, MlPredictModelStreamRequest())
with grpc.insecure_channel(sys.argv[1]) as channel:
    for response in MLServiceStub(channel).PredictModelStream(request, timeout=20):
        print(json.dumps(MessageToDict(response, preserving_proto_field_name=True)))
"""


def test_the_messages_and_the_service_are_those_of_opensearch() -> None:
    (own_messages,), (own_service,) = read_files(PROTOS, "ml_messages"), read_files(PROTOS, "ml_service")
    names = [f"{own_messages.package}.{message.name}" for message in own_messages.message_type]
    described = opensearch_protobufs.run(DESCRIBE, *names)
    assert described.returncode == 0, described.stderr
    messages, service, methods = json.loads(described.stdout)
    assert names
    for message in own_messages.message_type:
        theirs = messages[f"{own_messages.package}.{message.name}"]
        for field in message.field:
            assert theirs[field.name] == [field.number, field.type, field.type_name.removeprefix(".") or None]
    (own,) = own_service.service
    assert f"{own_service.package}.{own.name}" == service
    (method,) = own.method
    expected = [method.input_type.removeprefix("."), method.output_type.removeprefix("."), method.server_streaming]
    assert methods[method.name] == expected


def test_a_client_of_opensearch_reads_the_stream(port: Port) -> None:
    parameters = {"messages": [{"role": "user", "content": "hé"}], "x_llm_interface": "openai/v1/chat/completions"}
    with background_provider(openai_stream(["Hel", "lö"])) as provider:
        model_id = port.sidecar.create_model(openai(provider.url))
        ended = opensearch_protobufs.run(READ_AS_OPENSEARCH_PY_DOES, port.target, model_id, json.dumps(parameters))
    assert ended.returncode == 0, ended.stderr
    *chunks, last = [json.loads(line)["inference_results"][0]["output"] for line in ended.stdout.splitlines()]
    assert chunks == [
        [{"name": "response", "data_as_map": {"content": text, "is_last": False}}] for text in ("Hel", "lö")
    ]
    assert last[0] == {"name": "response", "data_as_map": {"content": "", "is_last": True}}
    assert provider.requests[0].json()["messages"] == parameters["messages"]


def test_the_program_of_the_page_runs_as_it_is_written(port: Port) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (program,) = [block.replace("127.0.0.1:9511", port.target) for block in blocks if "MLServiceStub" in block]
    with background_provider(openai_stream(["Search", " engine"])) as provider:
        ended = opensearch_protobufs.run(program, port.sidecar.create_model(openai(provider.url)))
    assert (ended.returncode, ended.stdout) == (0, "Search engine"), ended.stderr
