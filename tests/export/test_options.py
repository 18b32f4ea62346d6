"""Each limit of a server has a range, whose ends are taken and beyond which it is refused by name."""

import asyncio
import math
import re
import typing

import pytest

from export.server.dispatcher import Dispatcher
from export.server.grpc_api import bound_server
from export.server.models import Models
from export.server.options import ServerOptions
from export.server.secrets import Secrets
from export.versions import ExportError
from keras_transformer.ground.machine import processor_cores
from tests.support.places import ROOT

PORTS = ["port", "grpc_port"]
FIELDS = typing.get_type_hints(ServerOptions)
COUNTS = [name for name, kind in FIELDS.items() if kind is int and name not in PORTS]
SECONDS = [name for name, kind in FIELDS.items() if kind is float]
ENDS = {"workers": 1024, "body_bytes": 1 << 30, "connections": 1 << 20}
DAY = 86_400.0
RANGES = [
    *((name, [1, ENDS.get(name, 1 << 40)], [0, -1] + [ENDS.get(name, 0) + 1] * (name in ENDS)) for name in COUNTS),
    *((name, [1e-3, 1e9], [0.0, -1.0, math.nan]) for name in SECONDS if "poll" in name),
    *((name, [1e-3, DAY], [0.0, -1.0, math.nan, math.inf, DAY + 1]) for name in SECONDS if "poll" not in name),
    *((name, [0, 1, 65535], [-1, 65536]) for name in PORTS),
]


def test_the_table_has_every_number():
    assert len(COUNTS) >= 6 and len(SECONDS) >= 6 and len(RANGES) == len(COUNTS) + len(SECONDS) + len(PORTS)


@pytest.mark.parametrize(("name", "taken", "refused"), RANGES, ids=[name for name, *_ in RANGES])
def test_a_number_has_a_range(name, taken, refused):
    for value in taken:
        assert getattr(ServerOptions(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(ExportError, match=rf"\b{name}\b is {value}; it must be"):
            ServerOptions(**{name: value})


def test_a_grpc_server_takes_the_largest_numbers():
    async def take():
        options = ServerOptions(**{name: 0 if name in PORTS else taken[-1] for name, taken, _ in RANGES})
        dispatcher = Dispatcher(Models([]), options)
        server, port = bound_server(dispatcher, Secrets(options))
        await server.stop(None)
        dispatcher.close()
        return port

    assert asyncio.run(take()) > 0


def test_the_defaults_are_those_of_the_documents():
    serving, operating = (
        (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("serving", "operating")
    )
    options = ServerOptions()
    written = {"workers": "cores", "body_bytes": f"{options.body_bytes / 2**20:g} MiB"}
    rows = re.findall(r"^\| (`--[^|]+) \| ([^|]+) \|", serving, re.MULTILINE)
    table = [pair for names, values in rows for pair in zip(names.split(", "), values.split(", "), strict=True)]
    assert len(table) == 11
    for option, value in table:
        name = option.strip("`-").replace("-", "_")
        default = getattr(options, name)
        assert value == written.get(name, f"{default:g} s" if name in SECONDS else str(default)), name
    assert options.workers == processor_cores()
    assert f"`--models-poll-seconds` ({options.models_poll_seconds:g} s)" in operating
    for sentence in (
        f"serves {options.connections:,} HTTP and {options.connections:,} gRPC connections at the same time",
        f"at most {options.bytes_in_flight // options.body_bytes} times `--body-bytes`",
        f"an answer at most {options.answer_bytes // options.body_bytes} times as many",
        f"the connection closes after {options.header_seconds:g} seconds of dropped input",
        f"stays open for {options.idle_seconds:g} s",
    ):
        assert sentence in " ".join(f"{serving} {operating}".split())


def test_what_needs_another_option_is_refused_without_it(tmp_path):
    for alone, needed in (
        ({"log_text": True}, "log_requests"),
        ({"tls_client_ca": tmp_path}, "tls_certificate"),
        ({"tls_key": tmp_path}, "tls_certificate"),
        ({"tls_certificate": tmp_path}, "tls_key"),
    ):
        with pytest.raises(ExportError, match=needed):
            ServerOptions(**alone)
    ServerOptions(tls_certificate=tmp_path, tls_key=tmp_path, tls_client_ca=tmp_path)
    ServerOptions(log_text=True, log_requests=tmp_path)


def test_rest_and_grpc_have_a_port_each():
    with pytest.raises(ExportError, match="port and grpc_port are both 8500: REST and gRPC need a port each"):
        ServerOptions(port=8500)
    ServerOptions(port=0, grpc_port=0)  # the system chooses two


def test_nothing_is_open_to_others_unless_it_is_asked_for():
    options = ServerOptions()
    assert options.host == "127.0.0.1" and not options.allow_origins
    assert not options.metrics_without_key and not options.log_text and options.log_requests is None
