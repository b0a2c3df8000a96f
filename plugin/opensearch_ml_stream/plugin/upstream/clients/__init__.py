"""The two clients for providers, our own and aiohttp for those behind a proxy, and which of them calls."""
