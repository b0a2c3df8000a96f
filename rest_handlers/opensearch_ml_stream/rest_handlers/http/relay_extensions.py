"""What our server offers to an application that relays requests, beside ASGI: a proxy needs more of HTTP/1.1.

A server offers what stands among the `extensions` of the scope:

- HTTP_TRAILERS: ASGI's `http.response.trailers`. And the request's own trailers, as (name, value) pairs, under
  REQUEST_TRAILERS of the last message of `receive`, where there are any.
- INFORMATIONAL: the message of this type, with `status` (102 to 199) and `headers`, before `http.response.start`.
- BROKEN: the message of this type breaks a response off that has started: the client sees that it is not whole.
- LONG_REQUEST: the message of this type says that the request may take any time, as long as its body makes progress.
"""

HTTP_TRAILERS = "http.response.trailers"
REQUEST_TRAILERS = "opensearch_ml_stream.request_trailers"
INFORMATIONAL = "opensearch_ml_stream.informational_response"
BROKEN = "opensearch_ml_stream.broken_response"
LONG_REQUEST = "opensearch_ml_stream.long_request"
