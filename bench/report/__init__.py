"""Results as tables, as a plot and as a page."""
