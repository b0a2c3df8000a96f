"""How often models were called and for how long: written by every worker of a server, read by any of them."""
