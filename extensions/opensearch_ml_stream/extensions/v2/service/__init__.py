"""The V2 protocol (Open Inference Protocol): its use cases over the predictions and the registry."""
