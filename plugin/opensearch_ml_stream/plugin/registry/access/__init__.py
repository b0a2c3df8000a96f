"""Access of callers to what is stored: read from requests, and checked through a model's group."""
