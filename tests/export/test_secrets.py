"""What only the operator has, certificates and keys: what is wrong is one sentence, and what is whole stays in use."""

import asyncio
import itertools
import ssl

import pytest

from export.client.access import Access
from export.client.client import ServingClient
from export.client.transports import ClientError
from export.serve import app
from export.server import tls
from export.server.options import ServerOptions
from export.server.secrets import Secrets
from export.server.tls import Certificate
from export.versions import ExportError
from keras_transformer.ground.errors import UserError
from tests.support.certificates import Pair, openssl
from tests.support.commands import assert_one_sentence, invoke


class Changing:
    """A secret whose files are, one look after the other, changed (True), as before (False), or wrong (a text)."""

    def __init__(self, looks):
        self.looks = iter(looks)

    def refresh(self):
        look = next(self.looks, None)
        if look is None:
            raise KeyboardInterrupt  # ends the test: nobody catches it on the way
        if isinstance(look, str):
            raise ExportError(look)
        return look


@pytest.mark.parametrize("name", ["certificate", "keys"])
@pytest.mark.parametrize(
    ("looks", "logged"),
    [
        ([False, False], []),
        ([True, False, True], ["changed", "changed"]),
        (["a.", "a.", "a."], ["a."]),
        (["a.", "b.", "a."], ["a.", "b.", "a."]),
        (["a.", False, "a."], ["a.", "a."]),
        (["a.", True, "a.", "a."], ["a.", "changed", "a."]),
    ],
)
def test_an_error_is_logged_when_it_comes_and_not_again_while_it_lasts(name, looks, logged, caplog, monkeypatch):
    secrets = Secrets(ServerOptions())
    setattr(secrets, name, Changing(looks))

    async def at_once(function):
        return function()

    monkeypatch.setattr(asyncio, "to_thread", at_once)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(secrets.watch(0))
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(logged)
    assert all(part in message for part, message in zip(logged, messages, strict=True))


@pytest.mark.parametrize("missing", ["tls_certificate", "tls_key"])
def test_half_of_a_certificate_is_refused_before_it_is_read(missing, tmp_path):
    both = {"tls_certificate": tmp_path / "none", "tls_key": tmp_path / "none"}
    with pytest.raises(ExportError, match="both tls_certificate and tls_key"):
        ServerOptions(**both | {missing: None})
    with pytest.raises(ExportError, match="cannot be read"):
        Secrets(ServerOptions(**both))


# certificates


def test_another_authority_of_clients_replaces_the_first(authority, stranger, tmp_path):
    """It is not added: whom the first one had signed is a stranger from then on."""
    pair, client_ca = authority.pair("server"), tmp_path / "ca"
    client_ca.write_bytes(authority.certificate.read_bytes())
    certificate = Certificate(*pair, client_ca)
    assert certificate.refresh() is False
    client_ca.write_bytes(stranger.certificate.read_bytes())
    assert certificate.refresh() is True
    [known] = certificate.context.current.get_ca_certs()
    assert dict(pairs[0] for pairs in known["subject"])["commonName"] == "another-authority"


@pytest.mark.parametrize("has_ca", [False, True])
def test_connections_are_of_tls_1_2_at_least_and_are_not_negotiated_again(has_ca, authority):
    context = Certificate(*authority.pair("server"), authority.certificate if has_ca else None).context.current
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2 and context.options & ssl.OP_NO_RENEGOTIATION
    assert context.verify_mode is (ssl.CERT_REQUIRED if has_ca else ssl.CERT_NONE)


def test_files_that_are_wrong_are_refused_at_every_look_and_so_are_those_that_change_meanwhile(authority, monkeypatch):
    pair = authority.pair("changing")
    certificate = Certificate(*pair)
    whole = certificate.context.current
    pair.key.write_bytes(authority.pair("other").key.read_bytes())
    for _ in range(2):
        with pytest.raises(ExportError, match="does not belong"):
            certificate.refresh()
    authority.pair("changing")
    reads = itertools.count()
    monkeypatch.setattr(tls, "content_of", lambda file: file.read_bytes() + b"\n" * next(reads))
    with pytest.raises(ExportError, match="changed while it was read"):
        certificate.refresh()
    assert certificate.context.current is whole
    monkeypatch.undo()
    assert certificate.refresh() is True and certificate.refresh() is False


# mistakes


def test_each_mistake_in_the_files_is_one_sentence(authority, tmp_path):
    pair, other, nothing = authority.pair("server"), authority.pair("other"), tmp_path / "nothing"
    nothing.write_text("")
    damaged = tmp_path / "damaged"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    secret = tmp_path / "secret"
    openssl("ec", "-in", pair.key, "-aes128", "-passout", "pass:long enough", "-out", secret)
    for files, reason in [
        ((tmp_path / "none", pair.key), "none cannot be read"),
        ((pair.certificate, tmp_path / "none"), "none cannot be read"),
        ((pair.certificate, other.key), "does not belong to"),
        ((pair.key, pair.certificate), "no certificate"),
        ((pair.certificate, nothing), "no private key"),
        ((damaged, pair.key), "cannot be used"),
        ((pair.certificate, secret), "passphrase"),
        ((*pair, tmp_path / "none"), "none cannot be read"),
        ((*pair, nothing), "no certificate"),
        ((*pair, damaged), "cannot be read"),
    ]:
        with pytest.raises(ExportError, match=reason) as error:
            Certificate(*files)
        assert "\n" not in str(error.value)


def test_the_command_refuses_a_mistake_before_anything_listens(echo_folder, authority):
    pair, other = authority.pair("server"), authority.pair("other")
    assert_one_sentence(invoke(app, echo_folder, "--tls-certificate", pair.certificate), "tls_key")
    assert_one_sentence(invoke(app, echo_folder, "--tls-client-ca", authority.certificate), "tls_certificate")
    mismatch = invoke(app, echo_folder, "--tls-certificate", pair.certificate, "--tls-key", other.key)
    assert_one_sentence(mismatch, "does not belong")


def test_a_client_refuses_files_that_make_no_sense(authority, tmp_path):
    pair = Pair(authority.certificate, authority.key)
    with pytest.raises(UserError, match="both"):
        Access(certificate=pair.certificate)
    with pytest.raises(UserError, match="none cannot be read"):
        Access(ca=tmp_path / "none")
    for url in ("http://localhost:1/v1/models/m", "grpc://localhost:1/m"):
        with pytest.raises(ClientError, match="s://"):
            ServingClient(url, access=Access(ca=authority.certificate))
