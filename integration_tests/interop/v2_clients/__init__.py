"""Clients of the V2 protocol as their makers document them, and the tests of MLServer that any such server passes."""
