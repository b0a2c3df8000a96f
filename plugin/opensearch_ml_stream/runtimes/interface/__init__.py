"""What a model is written against: the names, fields, defaults and behaviours of MLServer's Python package.

Standard library only. Where `mlserver` is not installed, `import mlserver` gives this package (see `alias`).
"""
