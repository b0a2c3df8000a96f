"""Model hosts: services that stream in the dialect of the model they host, recognised by its first event."""
