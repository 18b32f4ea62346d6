"""The files of the certificate and of the keys are looked at for ever, and an error in them is logged once."""

import asyncio

import pytest

from export.server.options import ServerOptions
from export.server.secrets import Secrets
from export.versions import ExportError


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
