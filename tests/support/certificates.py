"""Certificates of an authority of one's own, by the program openssl: of servers, of clients, and of strangers."""

import pathlib
import shutil
import subprocess
from typing import NamedTuple

import pytest


class Pair(NamedTuple):
    """The files of a certificate and of its key."""

    certificate: pathlib.Path
    key: pathlib.Path


def openssl(*arguments):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here")
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)


class Authority:
    """Signs certificates with a key of its own; `certificate` is what others must trust."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.certificate, self.key = folder / f"{name}.crt", folder / f"{name}.key"
        openssl("req", "-x509", *self._key(self.key), "-subj", f"/CN={name}", "-days", 2, "-out", self.certificate)

    def pair(self, name, addresses="DNS:localhost,IP:127.0.0.1"):
        """Return the files of a new certificate and its key; those of the same name are replaced."""
        pair = Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        extension = ["-addext", f"subjectAltName={addresses}", "-addext", "basicConstraints=critical,CA:FALSE"]
        signed = ["-CA", self.certificate, "-CAkey", self.key, "-days", 2, "-out", pair.certificate]
        openssl("req", "-x509", *self._key(pair.key), "-subj", f"/CN={name}", *extension, *signed)
        return pair

    def _key(self, file):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-keyout", file]
