"""What only the operator has, certificates and keys: what is wrong is one sentence, and what is whole stays in use."""

import asyncio
import datetime
import itertools
import ssl

import pytest

from export.client.access import Access
from export.client.client import ServingClient
from export.server import tls
from export.server.options import ServerOptions
from export.server.secrets import Secrets
from export.server.tls import Certificate, is_for_grpc, time_of, validity
from export.versions import ExportError
from tests.support.certificates import Pair, openssl
from tests.support.servers import serving


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


KEYS = {
    "RSA": (["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], True),
    "P-256": (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], True),
    "P-384": (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"], True),
    "P-521": (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"], False),
    "secp256k1": (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"], False),
    "Ed25519": (["-algorithm", "ED25519"], False),
}


def pair_of(folder, kind, days=2):
    """The files of a certificate that signs itself, with a key of a kind."""
    key, certificate = folder / f"{kind}.key", folder / f"{kind}.crt"
    openssl("genpkey", *KEYS[kind][0], "-out", key)
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    openssl("req", "-x509", "-key", key, "-subj", "/CN=localhost", *names, "-days", days, "-out", certificate)
    return Pair(certificate, key)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KEYS)
def test_a_key_that_grpc_cannot_use_is_refused_at_the_start_and_at_a_renewal(kind, authority, echo_folder, tmp_path):
    """Of the others both protocols answer."""
    pair, is_possible = pair_of(tmp_path, kind), KEYS[kind][1]
    renewed = authority.pair("renewed")
    certificate = Certificate(*renewed)
    for old, new in zip(renewed, pair, strict=True):
        old.write_bytes(new.read_bytes())
    if not is_possible:
        for read in (lambda: Certificate(*pair), certificate.refresh):
            with pytest.raises(ExportError, match="is none that gRPC can use: make one of RSA, P-256, P-384"):
                read()
        return
    assert certificate.refresh()
    with serving(echo_folder, tls_certificate=pair.certificate, tls_key=pair.key) as server:
        for url in (server.url, server.grpc_url):
            client = ServingClient(url.replace("127.0.0.1", "localhost"), 20, access=Access(ca=pair.certificate))
            assert client.translate(["a"])[0].text == "a"


def test_keys_in_the_older_notations_are_read(tmp_path):
    for kind, notation in (("RSA", ["rsa"]), ("P-256", ["ec"]), ("P-521", ["ec"])):
        pair = pair_of(tmp_path, kind)
        old = tmp_path / "old.key"
        openssl(*notation, "-in", pair.key, "-out", old, *(["-traditional"] if kind == "RSA" else []))
        assert b"PRIVATE KEY" in old.read_bytes() and is_for_grpc(old.read_bytes()) is KEYS[kind][1]
    assert not is_for_grpc(b"") and not is_for_grpc(b"-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----")


def test_the_time_of_a_certificate_is_read_and_what_is_over_is_said_once(authority, monkeypatch, caplog):
    pair = authority.pair("timed")
    secrets = Secrets(ServerOptions(tls_certificate=pair.certificate, tls_key=pair.key))
    begin, end = validity(pair.certificate.read_bytes())
    assert end - begin == datetime.timedelta(days=2) and abs(begin - datetime.datetime.now(datetime.UTC)).days <= 0
    assert secrets.certificate.why_not_valid() == ""
    assert time_of(b"500101000000", None).year == 1950 and time_of(b"491231235959", None).year == 2049
    assert time_of(None, b"20500101000000").year == 2050
    monkeypatch.setattr(tls, "validity", lambda certificate: (begin, begin))
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(secrets.watch(0.01), 0.2))
    assert caplog.text.count("clients refuse it") == 1


def test_files_that_every_user_can_read_are_named(authority, tmp_path, caplog):
    pair, keys = authority.pair("readable"), tmp_path / "keys"
    keys.write_text("a-key\n")
    for mode, count in ((0o600, 0), (0o640, 0), (0o644, 2)):
        caplog.clear()
        for file in (pair.key, keys):
            file.chmod(mode)
        Secrets(ServerOptions(tls_certificate=pair.certificate, tls_key=pair.key, api_key_file=keys))
        assert caplog.text.count("every user of this machine can read") == count
