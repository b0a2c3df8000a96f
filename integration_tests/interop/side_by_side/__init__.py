"""MLServer and this server with one folder of runtimes: the same requests, the same responses."""
