"""The keeper: the process that reads the folders of models, and starts, restarts and stops their processes."""
