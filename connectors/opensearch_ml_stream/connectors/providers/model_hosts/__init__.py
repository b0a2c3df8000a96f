"""Services that stream whatever dialect their model speaks; the dialect is recognised from its events."""
