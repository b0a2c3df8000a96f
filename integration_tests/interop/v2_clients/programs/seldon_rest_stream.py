"""A client of a chat model of Seldon's LLM module, over REST: httpx-sse and tensors of role, content and type."""

import json

import httpx
from httpx_sse import connect_sse

inference_request = {
    "inputs": [
        {"name": "role", "shape": [1], "datatype": "BYTES", "data": ["user"]},
        {"name": "content", "shape": [1], "datatype": "BYTES", "data": ["What is the capital of France?"]},
        {"name": "type", "shape": [1], "datatype": "BYTES", "data": ["text"]},
    ],
    "parameters": {"llm_parameters": {"temperature": 0.25}},
}

with (
    httpx.Client() as client,
    connect_sse(
        client,
        "POST",
        "http://localhost:8080/v2/models/text-model/infer_stream",
        json=inference_request,
        headers={"Seldon-Model": "text-model"},
    ) as event_source,
):
    for sse in event_source.iter_sse():
        tensors = {output["name"]: output["data"] for output in json.loads(sse.data)["outputs"]}
        print(tensors["role"] + tensors["content"] + tensors["type"])
