"""Models that run in Python: the code of their processes, and the interface that they are written for.

Only the standard library of Python 3.10 is imported here, since a model's interpreter may be another than the
sidecar's, with the model's packages and none of ours. The sidecar's side is `opensearch_ml_stream.extensions.runtimes`.
"""
