"""HTTP of the runtimes: custom handlers of their models."""
