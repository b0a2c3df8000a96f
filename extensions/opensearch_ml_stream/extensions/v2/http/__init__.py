"""The V2 protocol (Open Inference Protocol) over HTTP: `/v2`."""
