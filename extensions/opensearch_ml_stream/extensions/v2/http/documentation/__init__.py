"""Documentation of `/v2` for people and programs: pages without scripts, and the OpenAPI documents that they show."""
