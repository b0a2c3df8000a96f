"""Diagnosis of a call of a provider: its steps, their report, and a recording of its stream."""
