"""JSON Schema (draft 2020-12): compile a schema once, then validate values in bounded steps and nesting.

Own code, since no library bounds its work: one of 2 KiB can ask for 2^18 validations of one value. A caller's schema
runs on the event loop, so each subschema, comparison and pattern takes steps from a budget (see `evaluation`).
https://json-schema.org/draft/2020-12/json-schema-validation. `format` and the `content` keywords are ignored.
"""
