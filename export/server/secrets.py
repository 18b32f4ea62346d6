"""What only the operator has: the certificate and the API keys, read before anything listens and when they change."""

import asyncio
import logging
import stat

from ..versions import ExportError
from .api_keys import ApiKeys
from .options import ServerOptions
from .tls import Certificate

log = logging.getLogger("export.server")


class Secrets:
    """The certificate and the keys that ServerOptions name, each None if there is none.

    Raises ExportError if a file cannot be used.
    """

    def __init__(self, options: ServerOptions):
        self.certificate: Certificate | None = None
        self.keys: ApiKeys | None = None
        self.failing: set[str] = set()  # those whose files changed and cannot be used: what was read before stays
        if options.tls_certificate is not None and options.tls_key is not None:
            self.certificate = Certificate(options.tls_certificate, options.tls_key, options.tls_client_ca)
        if options.api_key_file is not None:
            self.keys = ApiKeys(options.api_key_file)
        for file in filter(None, (options.tls_key, options.api_key_file)):
            if file.stat().st_mode & stat.S_IROTH:
                log.warning("every user of this machine can read %s: chmod o-r it", file)

    async def watch(self, seconds: float) -> None:
        """Look for changes of the files every so many seconds, for ever. The same error is logged once.

        Also that the time of the certificate is over, or has not begun.
        """
        logged: dict[str, str] = {}
        while True:
            reason = self.certificate.why_not_valid() if self.certificate is not None else ""
            if reason and logged.get("time") != reason:
                log.error("%s", reason)
            logged["time"] = reason
            await asyncio.sleep(seconds)
            for name, secret in {"certificate": self.certificate, "API keys": self.keys}.items():
                try:
                    if secret is not None and await asyncio.to_thread(secret.refresh):
                        log.warning("the %s changed; connections and requests from now on use the new ones", name)
                    logged.pop(name, None)
                    self.failing.discard(name)
                except ExportError as error:
                    self.failing.add(name)
                    if logged.get(name) != str(error):
                        log.error("%s The %s read before stay in use.", error, name)
                    logged[name] = str(error)
