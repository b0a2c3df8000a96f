"""AWS message format: encrypts and decrypts text in the format of the AWS Encryption SDK, as ML Commons does.

Version 2, algorithm suite 0x0578: AES-256-GCM in frames, HKDF-SHA512, key commitment, ECDSA P-384 signature. The data
key is wrapped with the cluster's master key by AES-GCM (provider `Custom`, empty key id). All numbers are big-endian:

    header  02 | 0578 | message id[32] | u16 length, aad | u16 1 | wrapped data key | 02 | u32 frame length
            | commitment[32] | header tag[16]
    frame   u32 sequence | iv[12] | cipher text | tag[16]; the last one: ffffffff | u32 sequence | iv | u32 length | ...
    footer  u16 length | DER signature over everything before the footer
"""

import base64
import binascii
import hmac
import os
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from opensearch_ml_stream.connectors.errors import Internal

_SUITE = b"\x05\x78"
_PREFIX = b"\x02" + _SUITE
_FRAME_LENGTH = 4096
_IV_LENGTH = 12
_TAG_LENGTH = 16
_KEY_LENGTH = 32
_PUBLIC_KEY_NAME = b"aws-crypto-public-key"
_PROVIDER = b"Custom"
# The provider info is the (empty) key id, the tag's length in bits and the length of the iv; the iv follows.
_PROVIDER_INFO = struct.pack(">II", _TAG_LENGTH * 8, _IV_LENGTH)
_FRAME_AAD = b"AWSKMSEncryptionClient Frame"
_FINAL_FRAME_AAD = b"AWSKMSEncryptionClient Final Frame"
_FINAL_FRAME = 0xFFFFFFFF

_UNREADABLE = (
    "A stored credential cannot be decrypted: it was encrypted with another master key, or it has been changed or cut. "
    "Restore document master_key of index .plugins-ml-config, or update the connector with its credential again"
)


def encrypt(master_key: bytes, text: str) -> str:
    """Encrypt a string; return the message in base64. Each call uses a new data key, message id and signature key."""
    message_id, data_key, iv = os.urandom(32), os.urandom(_KEY_LENGTH), os.urandom(_IV_LENGTH)
    signing_key = ec.generate_private_key(ec.SECP384R1())
    aad = _encode_aad(signing_key.public_key())
    wrapped = AESGCM(master_key).encrypt(iv, data_key, aad)
    message_key, commitment = _derive(data_key, message_id)
    header = b"".join(
        (
            _PREFIX,
            message_id,
            _sized(aad),
            b"\x00\x01",
            _sized(_PROVIDER),
            _sized(_PROVIDER_INFO + iv),
            _sized(wrapped),
            b"\x02",
            struct.pack(">I", _FRAME_LENGTH),
            commitment,
        )
    )
    cipher = AESGCM(message_key)
    signed = header + cipher.encrypt(bytes(_IV_LENGTH), b"", header) + _encode_frames(cipher, message_id, text.encode())
    signature = signing_key.sign(signed, ec.ECDSA(hashes.SHA384()))
    return base64.b64encode(signed + _sized(signature)).decode("ascii")


def decrypt(master_key: bytes, message: str) -> str:
    """Return the string in a base64 message. Internal if the key is another one, or the message was changed or cut."""
    try:
        return _decrypt(master_key, base64.b64decode(message, validate=True))
    except (ValueError, struct.error, InvalidTag, InvalidSignature, binascii.Error):
        raise Internal(_UNREADABLE) from None


@dataclass(slots=True)
class _Reader:
    """Reads the fields of a message in order. ValueError if it ends too early."""

    data: bytes
    position: int = 0

    def take(self, length: int) -> bytes:
        part = self.data[self.position : self.position + length]
        if len(part) != length:
            raise ValueError("message cut short")
        self.position += length
        return part

    def expect(self, value: bytes) -> None:
        if self.take(len(value)) != value:
            raise ValueError("another message format")

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def sized(self) -> bytes:
        return self.take(int.from_bytes(self.take(2), "big"))


def _decrypt(master_key: bytes, message: bytes) -> str:
    reader = _Reader(message)
    reader.expect(_PREFIX)
    message_id = reader.take(32)
    aad = reader.sized()
    data_key = _unwrap(master_key, reader, aad)
    reader.expect(b"\x02")
    frame_length = reader.u32()
    message_key, commitment = _derive(data_key, message_id)
    if not hmac.compare_digest(reader.take(_KEY_LENGTH), commitment):
        raise ValueError("key commitment does not match")
    header = message[: reader.position]
    cipher = AESGCM(message_key)
    cipher.decrypt(bytes(_IV_LENGTH), reader.take(_TAG_LENGTH), header)
    text = _decode_frames(cipher, message_id, reader, frame_length)
    signed = message[: reader.position]
    signature = reader.sized()
    if reader.position != len(message):
        raise ValueError("text after the footer")
    _public_key(aad).verify(signature, signed, ec.ECDSA(hashes.SHA384()))
    return text.decode("utf-8")


def _unwrap(master_key: bytes, reader: _Reader, aad: bytes) -> bytes:
    """Decrypt the data key. ValueError unless the message has one wrapped key, of provider `Custom`."""
    reader.expect(b"\x00\x01")
    reader.expect(_sized(_PROVIDER))
    info = reader.sized()
    if len(info) != len(_PROVIDER_INFO) + _IV_LENGTH or not info.startswith(_PROVIDER_INFO):
        raise ValueError("another wrapping key")
    return AESGCM(master_key).decrypt(info[-_IV_LENGTH:], reader.sized(), aad)


def _encode_frames(cipher: AESGCM, message_id: bytes, text: bytes) -> bytes:
    """Encrypt into frames. The last one is marked as final, and is the only one that may be short or empty."""
    frames = []
    last = max(0, len(text) - 1) // _FRAME_LENGTH + 1
    for sequence in range(1, last + 1):
        part = text[(sequence - 1) * _FRAME_LENGTH : sequence * _FRAME_LENGTH]
        iv = sequence.to_bytes(_IV_LENGTH, "big")
        aad = _body_aad(message_id, _FINAL_FRAME_AAD if sequence == last else _FRAME_AAD, sequence, len(part))
        mark = struct.pack(">I", _FINAL_FRAME) if sequence == last else b""
        size = struct.pack(">I", len(part)) if sequence == last else b""
        frames.append(mark + struct.pack(">I", sequence) + iv + size + cipher.encrypt(iv, part, aad))
    return b"".join(frames)


def _decode_frames(cipher: AESGCM, message_id: bytes, reader: _Reader, frame_length: int) -> bytes:
    parts = []
    for expected in range(1, _FINAL_FRAME):
        sequence = reader.u32()
        final = sequence == _FINAL_FRAME
        if final:
            sequence = reader.u32()
        iv = reader.take(_IV_LENGTH)
        length = reader.u32() if final else frame_length
        if sequence != expected or iv != sequence.to_bytes(_IV_LENGTH, "big") or length > frame_length:
            raise ValueError("frames out of order")
        aad = _body_aad(message_id, _FINAL_FRAME_AAD if final else _FRAME_AAD, sequence, length)
        parts.append(cipher.decrypt(iv, reader.take(length + _TAG_LENGTH), aad))
        if final:
            break
    return b"".join(parts)


def _derive(data_key: bytes, message_id: bytes) -> tuple[bytes, bytes]:
    """Return the message key and the key commitment."""
    message_key, commitment = (
        HKDF(hashes.SHA512(), _KEY_LENGTH, message_id, info).derive(data_key)
        for info in (_SUITE + b"DERIVEKEY", b"COMMITKEY")
    )
    return message_key, commitment


def _encode_aad(public_key: ec.EllipticCurvePublicKey) -> bytes:
    point = base64.b64encode(public_key.public_bytes(Encoding.X962, PublicFormat.CompressedPoint))
    return b"\x00\x01" + _sized(_PUBLIC_KEY_NAME) + _sized(point)


def _public_key(aad: bytes) -> ec.EllipticCurvePublicKey:
    """Return the signature's key from the encryption context, which may hold other pairs too."""
    reader = _Reader(aad)
    pairs = {reader.sized(): reader.sized() for _ in range(int.from_bytes(reader.take(2), "big"))}
    if _PUBLIC_KEY_NAME not in pairs:
        raise ValueError("no signature key")
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP384R1(), base64.b64decode(pairs[_PUBLIC_KEY_NAME]))


def _body_aad(message_id: bytes, kind: bytes, sequence: int, length: int) -> bytes:
    return message_id + kind + struct.pack(">IQ", sequence, length)


def _sized(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value
