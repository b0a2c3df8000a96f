"""Who the command line is to a sidecar: logins that are given, in the environment, or remembered for its URL."""
