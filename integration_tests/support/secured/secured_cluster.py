"""OpenSearch 3.4.0 with its security plugin, as scripts/opensearch.sh runs it: users and roles of scripts/secured."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

PASSWORD = "Correct-Horse-1"  # of all users in scripts/secured/internal_users.yml
SERVICE_ACCOUNT = "sidecar"


@dataclass(frozen=True, slots=True)
class SecuredCluster:
    """Where it listens, with HTTPS, and the file of the certificate to trust."""

    url: str
    certificate: Path

    @property
    def store_url(self) -> str:
        """The URL of a store in it, for a sidecar with its service account."""
        return f"https://{SERVICE_ACCOUNT}:{PASSWORD}@{urlsplit(self.url).netloc}?ca_certs={self.certificate}"

    def client(self, user: str | None = "admin") -> httpx.Client:
        """A client of a user, without credentials for None; to be closed."""
        auth = None if user is None else (user, PASSWORD)
        return httpx.Client(base_url=self.url, auth=auth, verify=self.tls(), timeout=30)

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))

    def responds(self) -> bool:
        """Whether it runs and knows its users."""
        try:
            with self.client() as client:
                return client.get("/_cluster/health", timeout=2).status_code == 200
        except (httpx.TransportError, OSError):  # OSError: no certificate, so that it never ran
            return False
