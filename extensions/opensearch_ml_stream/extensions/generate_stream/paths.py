"""Where the routes of `/generate-stream` stand."""

GENERATE_STREAM_PATH = "/generate-stream"
