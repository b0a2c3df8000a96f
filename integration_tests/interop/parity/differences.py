"""Where the sidecar differs from ML Commons on purpose; docs/ml-commons.md gives the reasons."""

from collections.abc import Mapping

ERROR_TEXTS = "An error's text names the field and what it may hold"
CALLER_ERRORS = "What a caller did wrong is 400 or 404, never 500"

DIFFERENCES: Mapping[str, tuple[str, ...]] = {
    # The status is the same, and both respond with an error.
    ERROR_TEXTS: (
        "actions: an object", "actions: a string", "actions: an array of strings",
        "action: an unknown type", "action: an empty URL", "action: a URL without a scheme", "action: a number as URL",
        "create: actions is null",
        "parameter: 1E400*",
        "client_config: a string", "client_config: a number in words", "client_config: a number of 40 bits",
        "client_config: a null value", "client_config: an unknown retry policy",
        "client_config: skip_ssl_verification in words",
        "update: roles that are a string", "update: an action of an unknown type", "update: without a body",
        "register: a local function", "register: is_enabled in words", "register a group: without a body",
        "inline connector: an unknown protocol", "inline connector: a string",
        "deploy_setting: a time to live in words", "deploy_setting: a string",
        "rate_limiter: an unknown unit",
        "guardrails: an unknown type", "update a model: guardrails of an unknown type",
        "model_config: text embedding without model_type", "model_config: empty", "model_config: a string",
        "model_config: an unknown framework", "model_config: an unknown pooling",
        "update a model: an empty model_config", "update a model: without a body",
        "undeploy many: an id in a string",
        "cancel: an unknown task",
        "search of a negative size", "search sorted by an unknown field", "search by an unknown query",
        "search with an unknown key", "search from an array", "search: not JSON",
        "PUT /connectors/nobody", "PUT /models/nobody",
        "content type: YAML that says JSON",
        "body: cut off", "body: an array", "body: a string", "body: null", "body: blank", "body: not UTF-8",
        "body: a field twice", "body: single quotes", "body: NaN", "body: a comma more",
        "YAML: not YAML", "YAML: a field twice", "YAML: a scalar",
        "predict: parameters in a string", "predict: an array", "predict: not JSON", "predict: cut off",
        "predict: a field twice", "predict: input that its guardrail refuses",
        "predict: input that its interface refuses",
        "algorithm *: no *", "algorithm magic", "algorithm kmeans",
        "register: url", "register: is_hidden text", "register: model_node_ids text",
        "url with spaces in a placeholder", "no route: models/meta", "no route: _register_meta",
        "method BREW", "no predict action", "batch_predict without an action", "action_type batch_predict",
    ),
    # ML Commons responds with 500, the sidecar with 4xx.
    CALLER_ERRORS: (
        "create: name is null", "create: version is null", "create: protocol is null",
        "create: an object as *", "create: an array as name",
        "create: the protocol mcp_sse",
        "create: a credential that is an array", "create: a credential's value is null",
        "create: a credential's value is an object",
        "parameters: an array",
        "action: action_type is null", "action: method is null", "action: url is null",
        "register: a null name", "register: an object as name", "register: an unknown group",
        "register a group: an empty object", "register a group: a null name", "register a group: an object as name",
        "POST /connectors/_create", "source without its content type",
        "predict: parameters in an array",
        "text_docs: an object", "text_docs: a string",
        "response_filter that is wrong",
        "search: range with nonsense",
    ),
    "The error of an untrusted URL names the command that trusts it": (
        "action: a URL that is not trusted", "inline connector: a URL that is not trusted",
        "inline connector: update to a URL that is not trusted", "update: a URL that is not trusted",
    ),
    "An empty `connector_id` or `model_group_id` in a PUT means that none is given": ("put: empty *",),
    "Null means that a field is absent": (
        "create: description is null", "create: access null", "action: request_body is null", "client_config: null",
        "update: a null name", "register: a null description", "deploy_setting: null", "rate_limiter: null",
        "model_config: null", "update a model: a null name", "register a group: a null description",
    ),
    "A value of the wrong type or that cannot be used is refused, not dropped": (
        "parameters: a string", "action: headers in a string", "client_config: zero",
        "client_config: a negative number",
        "client_config: an unknown key", "inline connector: client_config with an unknown key",
        "update: client_config with an unknown key", "update: parameters in a string",
        "create: an unknown access mode", "register: an unknown access mode",
        "register a group: an unknown access mode", "update: an unknown access mode",
        "interface: a string that is no schema", "guardrails: a wrong regular expression",
    ),
    "An update is checked as a creation is": (
        "update: a blank name", "update: an empty name", "update: the protocol", "update: an unknown protocol",
        "update a model: a blank name", "update a model: an unknown connector_id", "update a group: a blank name",
    ),
    "A dry run checks the whole connector": ("create: dry run of a wrong connector",),
    "A name may have any characters": ("create: a name in Chinese",),
    "A request body may be written as an object": ("action: a body that is an object",),
    "A unit of time may be written in lower case": ("rate_limiter: a unit in lower case",),
    "Connectors for agents are refused": ("create: the protocol mcp_streamable_http",),
    "max_connection is unlimited unless it is given, and timeouts may be fractions of a second": (
        "client_config: empty", "client_config: a number with a point", "client_config: a retry policy in upper case",
        "client_config: retries without end", "client_config: skip_ssl_verification",
        "inline connector: client_config", "update: client_config",
    ),
    "Numbers keep the text that their author wrote": (
        "parameter: a small number", "template: a small number *", "template: an object without quotes",
        "template: messages without quotes", "template: JSON as a whole",
    ),
    "Guardrails and model_config are shown as they were given": (
        "guardrails", "guardrails: empty", "guardrails: no type", "guardrails: an unknown key",
        "update a model: guardrails", "update a model: merges what is stored",
        "model_config: an unknown key", "model_config: a dimension in a string", "model_config: more",
    ),
    "A model with a connector_id keeps no inline connector": ("register: connector and connector_id",),
    "The old path with name and version registers a model": ("register: the path with name and version",),
    "A model that was deployed shows its model_id": ("deploy and undeploy",),
    "`meta` is an id of a model like others": ("no route: GET models/meta",),
    "An id with an encoded slash is no path": ("get: the id a%2Fb", "get: the model a%2Fb"),
    "A search returns the _source that was asked for": ("search without source",),
    "A search without a body finds everything": ("search without a body: *",),
    "Searches with the embedded store are a subset of OpenSearch's": (
        "search by a query string",
        "search: highlight", "search: fields", "search: docvalue_fields", "search: explain", "search: suggest",
        "search: simple_query_string", "search: dis_max", "search: boosting", "search: function_score",
        "search: filters aggregation", "search: composite aggregation",
    ),
    "Credentials cannot be searched": ("search: a credential",),
    "A search that could tell a credential, or of what its caller may not see, is refused": (
        "search: script_fields", "search: query_string without fields",
    ),
    "A body is read before the model is looked up": ("POST /models/nobody/_predict",),
    "A content type that cannot be read is 406": ("content type: empty", "content type: json"),
    "There are no stack traces": ("query: an error with error_trace",),
    "YAML has the scalars of JSON, and no aliases": ("YAML: an alias", "YAML: a date, yes, an octal number"),
    "JSON and YAML are the formats there are": (
        "format: cbor", "format: smile", "format: magic", "accept: application/cbor",
    ),
    "Every input that a body may have is taken on the model's path too": ("text_docs: the model's path",),
    "A text cannot be null": ("text_docs: null", "text_docs: null alone"),
    "A string in quotes is always escaped, also when it looks like JSON": (
        "template: an object in quotes", "template: an object within a string", "template: an array in quotes",
        "template: an array within a string", "template: messages in quotes", "template: messages within a string",
        "template: messages in a string in quotes", "template: messages in a string within a string",
        "template: JSON in a string in quotes", "template: JSON in a string within a string",
        "text_docs: without a function",
    ),
    "What a user writes is not filled again": (
        "template: a placeholder in quotes", "template: a placeholder within a string",
        "template: a placeholder without quotes", "template: a placeholder of a credential without quotes",
    ),
    "Text stays as it is: no escapes for Chinese letters and slashes": (
        "template: Chinese *", "template: a newline and quotes *", "template: a slash and a tag *",
        "response_filter *=~*",
    ),
    "A place without quotes takes JSON only": (
        "template: text without quotes", "template: an empty string without quotes", "template: no JSON",
        "template: a bare placeholder without a value",
    ),
    "Parameters are filled into URLs, percent-encoded, and into headers": (
        "template: the URL", "template: a blank in the URL", "template: a header", "template: a header in Chinese",
    ),
    "A placeholder without a value is never sent": (
        "inline connector: *credential", "template: a header without its parameter",
        "template: a header without its credential",
    ),
    "A placeholder that nothing fills is never sent": ("template: a credential in the body",),
    "A provider's fault is 424, its refusal 400, its limit 429": (
        "provider says *", "provider responds with text", "provider responds with nothing", "provider is not there",
        "response_filter without a match", "response_filter $.absent", "response_filter $.e[[]0]",
    ),
    "A guardrail with a look-around or a back-reference cannot be registered; one that ML Commons has stored is kept, "
    "and calls of its model are 400 until it is changed": ("guardrail with look-around",),
    "A request may not change where a connector's credential goes: a parameter in the URL, or in a header that names a "
    "host or an account, keeps the connector's value, but for the model's name and what the connector lists in "
    "`_caller_parameters`; else it is a 400": ("caller sets another path",),
}  # fmt: skip
