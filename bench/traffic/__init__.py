"""The load: a provider that streams what it is asked for, and clients that check what comes."""
