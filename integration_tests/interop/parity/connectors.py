"""Exchanges about the creation of connectors."""

from collections.abc import Mapping
from typing import Any

from integration_tests.interop.parity.exchanges import Exchanges, Step

ACTION: dict[str, Any] = {
    "action_type": "predict",
    "method": "POST",
    "url": "@provider/echo",
    "headers": {"Authorization": "Bearer ${credential.key}"},
    "request_body": '{"model": "${parameters.model}", "input": "${parameters.input}"}',
}
CONNECTOR: dict[str, Any] = {
    "name": "@name",
    "description": "d",
    "version": 1,
    "protocol": "http",
    "parameters": {"model": "m"},
    "credential": {"key": "k"},
    "actions": [ACTION],
}
AWS: dict[str, Any] = {
    **CONNECTOR,
    "protocol": "aws_sigv4",
    "parameters": {"region": "us-east-1", "service_name": "bedrock", "model": "m"},
    "credential": {"access_key": "a", "secret_key": "s", "session_token": "t"},
}


def but(body: Mapping[str, Any], *absent: str, **changes: Any) -> dict[str, Any]:
    """Return the body with the changes, without the absent fields."""
    return {name: value for name, value in {**body, **changes}.items() if name not in absent}


def created(body: Any) -> list[Step]:
    """Return the creation of a connector and a look at what it has become."""
    return [("POST /connectors/_create", body), ("GET /connectors/@connector", None)]


def _action(*absent: str, **changes: Any) -> list[Step]:
    return created(but(CONNECTOR, actions=[but(ACTION, *absent, **changes)]))


def _parameter(value: Any) -> list[Step]:
    return created(but(CONNECTOR, parameters={"p": value}))


def _client_config(**values: Any) -> list[Step]:
    return created(but(CONNECTOR, client_config=values))


CREATE: Exchanges = {
    "create a connector": created(CONNECTOR),
    "create an AWS connector": created(AWS),
    "create: a trailing slash": [("POST /connectors/_create/", CONNECTOR)],
    "create: an empty object": created({}),
    "create: dry run of a whole connector": [("POST /connectors/_create", but(CONNECTOR, dry_run=True))],
    "create: dry run alone": [("POST /connectors/_create", {"dry_run": True})],
    "create: dry run of a wrong connector": [("POST /connectors/_create", but(CONNECTOR, "protocol", dry_run=True))],
    "create: dry run is false": created(but(CONNECTOR, dry_run=False)),
    "create: an unknown field": created(but(CONNECTOR, color="red")),
    "create: an unknown field that holds an object": created(but(CONNECTOR, color={"a": [1, {"b": 2}]})),
    **{f"create: no {name}": created(but(CONNECTOR, name)) for name in CONNECTOR},
    **{f"create: {name} is null": created(but(CONNECTOR, **{name: None})) for name in CONNECTOR},
    **{f"create: {name} is empty": created(but(CONNECTOR, **{name: ""})) for name in ("name", "version", "protocol")},
    "create: a blank name": created(but(CONNECTOR, name="  ")),
    "create: a number as name": created(but(CONNECTOR, name=5)),
    "create: a boolean as name": created(but(CONNECTOR, name=True)),
    "create: an object as name": created(but(CONNECTOR, name={"a": 1})),
    "create: an array as name": created(but(CONNECTOR, name=["a"])),
    "create: a name of 1,000 characters": created(but(CONNECTOR, name="n" * 1000)),
    "create: a name in Chinese": created(but(CONNECTOR, name="连接器 😀")),
    "create: a version with a point": created(but(CONNECTOR, version=1.5)),
    "create: a version in words": created(but(CONNECTOR, version="first")),
    "create: an object as version": created(but(CONNECTOR, version={})),
    "create: a number as description": created(but(CONNECTOR, description=5)),
    "create: an empty description": created(but(CONNECTOR, description="")),
    "create: an object as description": created(but(CONNECTOR, description={})),
    "create: an unknown protocol": created(but(CONNECTOR, protocol="grpc")),
    "create: the protocol in upper case": created(but(CONNECTOR, protocol="HTTP")),
    "create: a number as protocol": created(but(CONNECTOR, protocol=1)),
    "create: the protocol mcp_sse": created(but(CONNECTOR, protocol="mcp_sse", url="@provider")),
    "create: the protocol mcp_streamable_http": created(
        but(CONNECTOR, protocol="mcp_streamable_http", url="@provider")
    ),
    "create: no credential": created(but(CONNECTOR, "credential")),
    "create: an empty credential": created(but(CONNECTOR, credential={})),
    "create: a credential that is a string": created(but(CONNECTOR, credential="k")),
    "create: a credential that is an array": created(but(CONNECTOR, credential=["k"])),
    "create: a credential's value is a number": created(but(CONNECTOR, credential={"key": 5})),
    "create: a credential's value is null": created(but(CONNECTOR, credential={"key": None})),
    "create: a credential's value is an object": created(but(CONNECTOR, credential={"key": {"a": 1}})),
    "create: a credential's value is empty": created(but(CONNECTOR, credential={"key": ""})),
    "create: UI metadata": created(but(CONNECTOR, ui_metadata={"a": 1})),
    "create: UI metadata, read by Dashboards": [
        ("POST /connectors/_create", but(CONNECTOR, ui_metadata={"a": 1})),
        ("GET /connectors/@connector", None, {"User-Agent": "OpenSearch Dashboards"}),
    ],
    "create: the field provisioned_by": created(but(CONNECTOR, provisioned_by="x")),
    "create: the field tenant_id": created(but(CONNECTOR, tenant_id="x")),
    "create: the field owner": created(but(CONNECTOR, owner={"name": "me"})),
    "create: the field created_time": created(but(CONNECTOR, created_time=1)),
    "create: an AWS connector without keys": created(but(AWS, credential={"x": "y"})),
    "create: an AWS connector without credential": created(but(AWS, "credential")),
    "create: an AWS connector with a role": created(but(AWS, credential={"roleArn": "arn:aws:iam::1:role/r"})),
    "create: an AWS connector without a region": created(but(AWS, parameters={"service_name": "bedrock"})),
    "create: an AWS connector without a service": created(but(AWS, parameters={"region": "us-east-1"})),
    "create: an AWS connector without parameters": created(but(AWS, "parameters")),
    "create: region and service among the credentials": created(
        but(AWS, "parameters", credential={"access_key": "a", "secret_key": "s", "region": "r", "service_name": "s"})
    ),
}

PARAMETERS: Exchanges = {
    "parameters: empty": created(but(CONNECTOR, parameters={})),
    "parameters: a string": created(but(CONNECTOR, parameters="p")),
    "parameters: an array": created(but(CONNECTOR, parameters=["p"])),
    "parameter: a number": _parameter(5),
    "parameter: 0.7": _parameter(0.7),
    "parameter: a small number": [
        (
            "POST /connectors/_create",
            b'{"name":"@","version":1,"protocol":"http","credential":{"k":"v"},"parameters":{"p":0.0001},"actions":[{"action_type":"predict","method":"POST","url":"http://127.0.0.1:1/"}]}',
        ),
        ("GET /connectors/@connector", None),
    ],
    "parameter: 1E400": [
        (
            "POST /connectors/_create",
            b'{"name":"@","version":1,"protocol":"http","credential":{"k":"v"},"parameters":{"p":1E400},"actions":[{"action_type":"predict","method":"POST","url":"http://127.0.0.1:1/"}]}',
        ),
        ("GET /connectors/@connector", None),
    ],
    "parameter: 1E400 within an array": [
        (
            "POST /connectors/_create",
            b'{"name":"@","version":1,"protocol":"http","credential":{"k":"v"},"parameters":{"p":[1E400]},"actions":[{"action_type":"predict","method":"POST","url":"http://127.0.0.1:1/"}]}',
        ),
        ("GET /connectors/@connector", None),
    ],
    "parameter: an integer of 64 bits": _parameter(2**63 - 1),
    "parameter: an integer of 70 bits": _parameter(2**70),
    "parameter: true": _parameter(True),
    "parameter: null": _parameter(None),
    "parameter: an empty string": _parameter(""),
    "parameter: a string of JSON": _parameter('{"a": 1}'),
    "parameter: a string with quotes": _parameter('say "hi"\n\\'),
    "parameter: Chinese": _parameter("连接器 😀"),
    "parameter: an array of strings": _parameter(["a", "b"]),
    "parameter: an array of numbers": _parameter([1, 2.5]),
    "parameter: an empty array": _parameter([]),
    "parameter: an object": _parameter({"a": 1, "b": [True, None]}),
    "parameter: an empty object": _parameter({}),
    "parameter: a slash and a tag": _parameter({"a": "</b>&'="}),
}

ACTIONS: Exchanges = {
    "actions: an empty array": created(but(CONNECTOR, actions=[])),
    "actions: an object": created(but(CONNECTOR, actions=ACTION)),
    "actions: a string": created(but(CONNECTOR, actions="a")),
    "actions: an array of strings": created(but(CONNECTOR, actions=["a"])),
    "actions: two of one type": created(but(CONNECTOR, actions=[ACTION, ACTION])),
    "actions: predict and batch_predict": created(
        but(CONNECTOR, actions=[ACTION, but(ACTION, action_type="batch_predict")])
    ),
    **{f"action: no {name}": _action(name) for name in ACTION},
    **{f"action: {name} is null": _action(**{name: None}) for name in ACTION},
    "action: an unknown type": _action(action_type="guess"),
    **{
        f"action: the type {kind}": _action(action_type=kind)
        for kind in ("PREDICT", "Predict", "execute", "batch_predict", "cancel_batch_predict", "batch_predict_status")
    },
    **{f"action: the method {name}": _action(method=name) for name in ("get", "GET", "PUT", "DELETE", "BREW", "")},
    "action: a number as method": _action(method=5),
    "action: an empty URL": _action(url=""),
    "action: a URL that is not trusted": _action(url="https://example.org/"),
    "action: a URL without a scheme": _action(url="127.0.0.1/x"),
    "action: a URL with a parameter": created(
        but(CONNECTOR, parameters={"path": "echo"}, actions=[but(ACTION, url="@provider/${parameters.path}")])
    ),
    "action: a URL with a parameter that is absent": _action(url="@provider/${parameters.absent}"),
    "action: a number as URL": _action(url=5),
    "action: no headers in an object": _action(headers={}),
    "action: headers in a string": _action(headers="a"),
    "action: a header that is a number": _action(headers={"X-N": 5}),
    "action: a header that is true": _action(headers={"X-B": True}),
    "action: a body that is an object": _action(request_body={"a": "${parameters.x}"}),
    "action: a body that is a number": _action(request_body=5),
    "action: an empty body": _action(request_body=""),
    "action: a body that is no JSON": _action(request_body="{not json"),
    "action: a pre-process function": _action(pre_process_function="connector.pre_process.openai.embedding"),
    "action: an unknown pre-process function": _action(pre_process_function="connector.pre_process.nobody"),
    "action: a post-process function": _action(post_process_function="connector.post_process.openai.embedding"),
    "action: an unknown field": _action(color="red"),
    "action: a name": _action(name="one"),
    "action: a name that is a type": _action(name="predict"),
    "action: a name with a blank": _action(name="a b"),
    "action: a response filter": _action(response_filter="$.a"),
}

CLIENT_CONFIG: Exchanges = {
    "client_config: empty": _client_config(),
    "client_config: null": created(but(CONNECTOR, client_config=None)),
    "client_config: a string": created(but(CONNECTOR, client_config="a")),
    "client_config: max_connection": _client_config(max_connection=5),
    "client_config: all": _client_config(
        max_connection=5,
        connection_timeout=6,
        read_timeout=7,
        retry_backoff_millis=8,
        retry_timeout_seconds=9,
        max_retry_times=2,
        retry_backoff_policy="exponential_full_jitter",
    ),
    "client_config: numbers in strings": _client_config(max_connection="5", read_timeout="7"),
    "client_config: a number in words": _client_config(max_connection="five"),
    "client_config: a number with a point": _client_config(read_timeout=2.5),
    "client_config: zero": _client_config(read_timeout=0),
    "client_config: a negative number": _client_config(read_timeout=-1),
    "client_config: a number of 40 bits": _client_config(read_timeout=2**40),
    "client_config: a null value": _client_config(read_timeout=None),
    "client_config: an unknown key": _client_config(read_timeout=5, color="red"),
    "client_config: an unknown retry policy": _client_config(retry_backoff_policy="never"),
    "client_config: a retry policy in upper case": _client_config(retry_backoff_policy="CONSTANT"),
    "client_config: retries without end": _client_config(max_retry_times=-1),
    "client_config: skip_ssl_verification": _client_config(skip_ssl_verification=True),
    "client_config: skip_ssl_verification in words": _client_config(skip_ssl_verification="yes"),
}

EXCHANGES: Exchanges = {**CREATE, **PARAMETERS, **ACTIONS, **CLIENT_CONFIG}
