"""What only the operator has, certificates and keys: what is wrong is one sentence, and what is whole stays in use."""

import itertools
import ssl

import pytest

from export.server import tls
from export.server.options import ServerOptions
from export.server.secrets import Secrets
from export.server.tls import Certificate
from export.versions import ExportError
from tests.support.certificates import openssl


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
