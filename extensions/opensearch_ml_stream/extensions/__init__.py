"""Extensions: what stands beside the core, one folder a capability."""
