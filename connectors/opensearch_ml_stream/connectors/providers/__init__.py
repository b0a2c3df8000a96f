"""Providers: what is known of each, its PROVIDER, and how its events are read.

`known_providers` finds each module's PROVIDER. A module without one has what several providers' readers share.
"""
