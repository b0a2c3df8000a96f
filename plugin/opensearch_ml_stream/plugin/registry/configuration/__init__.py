"""Documents that configure others: the controllers of models, and the configs of the cluster."""
