"""Certificates and their keys out of PEM and PKCS #12 files, for the sidecar's port and its connections."""
