"""The server's certificate, and that of its clients: read when it starts, and again whenever the files change."""

import binascii
import datetime
import hashlib
import pathlib
import re
import ssl
from typing import Any

from ..versions import ExportError

CERTIFICATE, KEY = re.compile(rb"-----BEGIN CERTIFICATE-----"), re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")

KEY_CONTENT = re.compile(rb"-----BEGIN (RSA )?[A-Z ]*PRIVATE KEY-----(.*?)-----END", re.DOTALL)
OF_GRPC = {  # object identifiers in a key, in DER; with others gRPC's BoringSSL refuses every client
    "RSA": b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01",
    "P-256": b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
    "P-384": b"\x06\x05\x2b\x81\x04\x00\x22",
}
TIME = rb"(?:\x17\x0d(\d{12})Z|\x18\x0f(\d{14})Z)"  # in DER
VALIDITY = re.compile(TIME + TIME)  # from and until when a certificate is valid


class CurrentContext(ssl.SSLContext):
    """Gives each new connection the context `current`: asyncio keeps this object for as long as it listens."""

    current: ssl.SSLContext

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return self.current.wrap_bio(*arguments, **options)


class Certificate:
    """A certificate with its key, and the authority (CA) of clients' certificates if these must have one.

    certificate: PEM, the server's own first, then those between it and the root. key: PEM, without a passphrase.
    client_ca: PEM, one or several; a client without a certificate of one of them gets no connection.

    Raises ExportError, as `refresh` does, if a file cannot be read, or if the files do not belong together.
    """

    def __init__(self, certificate: pathlib.Path, key: pathlib.Path, client_ca: pathlib.Path | None = None):
        self.files = [file for file in (certificate, key, client_ca) if file is not None]
        self.context = CurrentContext(ssl.PROTOCOL_TLS_SERVER)
        self._digest, self._contents = b"", [b""]
        self.refresh()

    def refresh(self) -> bool:
        """Read the files if they have changed: connections made from now on have the new certificate. Returns whether
        they had; after an error the last certificate that was whole stays.
        """
        contents = [content_of(file) for file in self.files]
        digest = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).digest()
        if digest == self._digest:
            return False
        current = self._context_of(contents)
        if [content_of(file) for file in self.files] != contents:
            raise ExportError(f"{self.files[0]} changed while it was read.")
        self.context.current, self._contents, self._digest = current, contents, digest
        return True

    def _context_of(self, contents: list[bytes]) -> ssl.SSLContext:
        certificate, key, *client_ca = self.files
        for file, content, kind in zip(self.files, contents, (CERTIFICATE, KEY, CERTIFICATE), strict=False):
            if not kind.search(content):
                what = "private key" if kind is KEY else "certificate"
                raise ExportError(f"{file} has no {what} in PEM, which begins with -----BEGIN ... {what.upper()}-----.")
        if b"ENCRYPTED" in contents[1]:
            raise ExportError(f"The key {key} has a passphrase; write one without: openssl pkey -in {key} -out FILE.")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(certificate, key)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise ExportError(f"The key {key} does not belong to the certificate {certificate}.") from None
            raise ExportError(f"{certificate} with {key} cannot be used for TLS: {error.reason or error}.") from None
        if not is_for_grpc(contents[1]):
            raise ExportError(
                f"The key {key} is none that gRPC can use: make one of {', '.join(OF_GRPC)}, such as openssl genpkey "
                "-algorithm EC -pkeyopt ec_paramgen_curve:P-256."
            )
        for file in client_ca:
            try:
                context.load_verify_locations(cadata=contents[2].decode("ascii"))
            except (ssl.SSLError, UnicodeDecodeError) as error:
                reason = getattr(error, "reason", error)
                raise ExportError(f"{file} holds a certificate that cannot be read: {reason}.") from None
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def why_not_valid(self) -> str:
        """Return why clients refuse the certificate now, for its time; "" if they do not."""
        now, (begin, end) = datetime.datetime.now(datetime.UTC), validity(self._contents[0])
        if begin <= now <= end:
            return ""
        return (
            f"{self.files[0]} is valid from {begin:%Y-%m-%d %H:%M} until {end:%Y-%m-%d %H:%M} UTC: clients refuse it."
        )

    def grpc_credentials(self) -> Any:
        """Return credentials of a gRPC server, which asks for the current certificate at every new connection."""
        import grpc

        def current() -> Any:
            certificate, key, *client_ca = self._contents
            pairs = [(key, certificate)]
            return grpc.ssl_server_certificate_configuration(pairs, client_ca[0] if client_ca else None)

        return grpc.dynamic_ssl_server_credentials(
            current(), current, require_client_authentication=len(self._contents) > 2
        )


def is_for_grpc(key: bytes) -> bool:
    """Return whether gRPC can use a key in PEM."""
    found = KEY_CONTENT.search(key)
    if found is None or found[1]:
        return found is not None
    try:
        der = binascii.a2b_base64(found[2])
    except binascii.Error:
        return False
    return any(identifier in der for identifier in OF_GRPC.values())


def validity(certificate: bytes) -> tuple[datetime.datetime, datetime.datetime]:
    """Return from and until when the first certificate in PEM is valid."""
    pem = certificate[certificate.index(b"-----BEGIN CERTIFICATE") :].decode("ascii", "replace")
    end = pem.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
    found = VALIDITY.search(ssl.PEM_cert_to_DER_cert(pem[:end]))
    if found is None:
        return datetime.datetime.min.replace(tzinfo=datetime.UTC), datetime.datetime.max.replace(tzinfo=datetime.UTC)
    short_begin, begin, short_end, end_ = found.groups()
    return time_of(short_begin, begin), time_of(short_end, end_)


def time_of(short: bytes | None, long: bytes | None) -> datetime.datetime:
    """Return a time of DER: with two digits of the year, of which 50 is 1950 (RFC 5280, 4.1.2.5), or with four."""
    text = long.decode() if long is not None else (short or b"").decode()
    if long is None:
        text = ("19" if text >= "50" else "20") + text
    return datetime.datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=datetime.UTC)


def content_of(file: pathlib.Path) -> bytes:
    """Return the content of a file. Raises ExportError if it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise ExportError(f"{file} cannot be read: {error.strerror}.") from None
