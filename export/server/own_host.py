"""On this machine's own address, only requests to it: no page of another site may ask through a browser."""

import functools
import ipaddress
import json
import urllib.parse
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .errors import shown


class OwnHost:
    """An ASGI application before another one, which refuses requests that a page of another site sends.

    A page can let its name mean 127.0.0.1 (DNS rebinding); then `Host` has that name. Or it posts to localhost; then
    `Origin` has its name. A host name is checked if the server listens at `host`, an address of this machine alone.
    Pages of `origins` may ask.
    """

    def __init__(self, application: ASGIApp, host: str, origins: Sequence[str] = ()):
        self.application, self.is_local, self.origins = application, is_this_machine(host), origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = refusal(Headers(scope=scope), self.origins) if self.is_local and scope["type"] == "http" else None
        if reason is None:
            await self.application(scope, receive, send)
            return
        body = json.dumps({"error": reason})
        await Response(body, 403, media_type="application/json")(scope, receive, send)


def is_this_machine(host: str) -> bool:
    """Return whether a host name or an address always means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_peer_here(peer: str) -> bool:
    """Return whether a peer, as gRPC names it (ipv4:127.0.0.1:5000, ipv6:[::1]:5000, unix:), is on this machine."""
    kind, _, address = peer.partition(":")
    if kind == "unix":
        return True
    parts = urlsplit(f"//{urllib.parse.unquote(address)}")
    return kind in ("ipv4", "ipv6") and parts is not None and is_this_machine(parts.hostname or "")


def refusal(headers: Headers, origins: Sequence[str] = ()) -> str | None:
    """Return why a request with these headers is refused; None if it is not."""
    hosts = headers.getlist("host")
    if len(hosts) > 1:
        return "The request has more than one Host."
    host = hosts[0] if hosts else ""
    if host and not is_own(host):
        return f"This server answers as localhost or by its address, not as {shown(host)!a}: see docs/serving.md."
    origin = headers.get("origin")
    if origin is not None and origin not in origins and (urlsplit(origin) or ("", ""))[1].lower() != host.lower():
        return f"The page {shown(origin)!a} is of another site: it cannot ask this server."
    return None


@functools.lru_cache(16)  # that is 0.02 of the time that HTTP takes for a request; few, since a name may be long
def is_own(host: str) -> bool:
    """Return whether a Host header has an address, or a name that always means this machine. No site can have these."""
    parts = urlsplit(f"//{host}")
    name = (parts.hostname or "") if parts else ""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return is_this_machine(name.removesuffix("."))
    return True


def urlsplit(url: str) -> urllib.parse.SplitResult | None:
    """Return the parts of a URL; None if it is none."""
    try:
        return urllib.parse.urlsplit(url)
    except ValueError:
        return None
