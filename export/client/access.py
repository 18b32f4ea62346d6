"""What a server may want of a client: that it trusts a certificate, shows one of its own, and sends an API key."""

import dataclasses
import pathlib
import re
from typing import Any

from keras_transformer.ground.errors import UserError


@dataclasses.dataclass(frozen=True)
class Access:
    """How a client reaches a server that has TLS or API keys.

    ca: PEM of the authority of the server's certificate; None is those that the machine trusts.
    certificate, key: PEM of the client's own, for a server that asks for it (mutual TLS).
    api_key_file: its first line is sent as `Authorization: Bearer KEY`.

    Raises UserError if a file cannot be read, or if one of a pair is missing.
    """

    ca: pathlib.Path | None = None
    certificate: pathlib.Path | None = None
    key: pathlib.Path | None = None
    api_key_file: pathlib.Path | None = None

    def __post_init__(self):
        if (self.certificate is None) != (self.key is None):
            raise UserError("A client's certificate needs its key: give both, or neither.")
        for file in (self.ca, self.certificate, self.key):
            read(file)
        self.api_key()  # raises UserError

    @property
    def has_tls(self) -> bool:
        """Whether it can only be meant for https:// and grpcs://."""
        return self.ca is not None or self.certificate is not None

    def api_key(self) -> str:
        """Return the key; "" if there is no file. Raises UserError if the file has none."""
        content = read(self.api_key_file)
        if content is None:
            return ""
        lines = [line.strip() for line in content.splitlines()]
        keys = [line for line in lines if line and not line.startswith(b"#")]
        if not keys or not re.fullmatch(rb"[!-~]+", keys[0]):
            raise UserError(f"{self.api_key_file} has no API key: its first line is one, of ASCII without spaces.")
        return keys[0].decode("ascii")

    def grpc_credentials(self) -> Any:
        """Return the credentials of a gRPC channel with TLS."""
        import grpc

        return grpc.ssl_channel_credentials(*map(read, (self.ca, self.key, self.certificate)))


class BearerKey:
    """Sends an API key with each request of `requests`, but not to another host to which a server redirects.

    As the `auth` of a session, it is also what keeps ~/.netrc from replacing the key.
    """

    def __init__(self, key: str):
        self._key = key

    def __call__(self, request: Any) -> Any:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def read(file: pathlib.Path | None) -> bytes | None:
    """Return the content of a file, None if there is none to read. Raises UserError if it cannot be read."""
    try:
        return None if file is None else file.read_bytes()
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None
