"""Models that run in Python: what their own process runs, and what such a model is written against.

Only the standard library of Python 3.10 is imported here: a model's interpreter may be another than the sidecar's, one
that has the model's packages and none of ours. The sidecar's side is `opensearch_ml_stream.extensions.runtimes`.
"""
