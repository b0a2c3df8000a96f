"""The log: one line an event on standard error, as text or JSON, bounded in a flood; see docs/logs.md."""
