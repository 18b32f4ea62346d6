"""Why a request got no answer: the cause, whether it passes, when to ask again, and what a message must not show."""

import email.utils
import re
import socket
import ssl
import time
from collections.abc import Iterator


def without_password(text: str) -> str:
    """Return a URL, or a message that has some, without the user and the password before a host."""
    return re.sub(r"(?<=//)[^/\s]*@", "", text)


def cause_of(error: BaseException) -> str:
    """Return the innermost reason, such as `Connection refused`, without the layers of urllib3 around it."""
    innermost = list(layers_of(error))[-1]
    return str(innermost) or type(innermost).__name__


def layers_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, the one that caused it, and so on."""
    layer: BaseException | None = error
    while layer is not None:
        yield layer
        layer = layer.__context__ or layer.__cause__


def passes(error: BaseException) -> bool:
    """Return whether a connection that failed may succeed later: not if the host is unknown or TLS fails."""
    for layer in layers_of(error):
        if isinstance(layer, socket.gaierror):
            return layer.errno == socket.EAI_AGAIN
        if isinstance(layer, ssl.SSLError):
            return False
    return True


def seconds_of(retry_after: str) -> float:
    """Return the seconds of a Retry-After header, which has a number or a date; 0 if it has neither."""
    if re.fullmatch(r"[0-9]{1,9}", retry_after):
        return float(retry_after)
    try:
        date = email.utils.parsedate_to_datetime(retry_after)
    except (ValueError, TypeError):
        return 0.0
    return max(0.0, date.timestamp() - time.time())
