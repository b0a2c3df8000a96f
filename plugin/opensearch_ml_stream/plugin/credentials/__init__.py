"""Secrets: how they are stored, found and kept out of sight."""
