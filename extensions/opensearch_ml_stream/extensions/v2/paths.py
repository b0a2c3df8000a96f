"""Where V2's routes stand."""

V2_PATH = "/v2"
