"""The V2 protocol (Open Inference Protocol) as clients of MLServer, Seldon, KServe and Triton speak it."""
