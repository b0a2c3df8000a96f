"""The load: a provider that streams what each request plans, and clients that check what arrives."""
