"""Errors of the REST API: what tells a client whether to ask again, and when."""

import asyncio

import pytest

from export.server.errors import Code, RequestError
from export.server.rest_api import answer_error


@pytest.mark.parametrize("code", Code)
def test_who_is_refused_for_a_while_is_told_when_to_ask_again(code):
    response = asyncio.run(answer_error(None, RequestError(code, "not now")))
    assert response.status_code == code.http_status and b"not now" in response.body
    assert response.headers.get("retry-after") == ("1" if response.status_code == 503 else None)
