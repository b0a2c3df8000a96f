"""What the workers of a server share, in files of a folder that is removed with the server."""
