"""Charsets by the names that a connector's parameter `charset` may give, which Java and Python both know.

Python's own look-up is not asked: it also knows codecs that are no charsets (`idna`, `undefined`, `base64`), imports
modules by the name that it is given, and keeps every name that it does not know.
"""

from encodings.aliases import aliases

from opensearch_ml_stream.connectors.errors import InvalidRequest

_NO_CHARSETS = {"base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec", "zlib_codec", "mbcs"}
_CODECS = frozenset(aliases.values()) - _NO_CHARSETS


def find_codec(charset: str) -> str:
    """Return Python's codec for a charset. InvalidRequest for a name that is not known."""
    name = charset[:40].lower().replace("-", "_").replace(" ", "_")
    codec = aliases.get(name, name)
    if codec not in _CODECS:
        raise InvalidRequest("The parameter [charset] is not the name of a charset, such as UTF-8 or ISO-8859-1")
    return codec
