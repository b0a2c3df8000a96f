"""The workers' side of runtimes: calls of models that run in processes of this server."""
