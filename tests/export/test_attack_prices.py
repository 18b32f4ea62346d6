"""What each text of a request costs up to its bound: twice as much takes at most twice as long, and holds nobody up.

With -s it prints the table of docs/serving.md.
"""

import contextlib
import gc
import threading
import time

import numpy as np
import pytest
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from export.server.bounds import BOUNDS, check_bounds
from export.server.errors import RequestError
from export.server.grpc_api import parse
from export.server.json_codec import MOST_VALUES, parsed
from export.server.options import ServerOptions
from export.server.paragraphs import has_spans
from export.server.protection import answered
from export.server.protobuf_codec import MOST_FIELDS, ProtobufCodec
from export.server.signature import signature_named
from export.server.version import Version
from keras_transformer.search.options import SearchOptions
from tests.export.test_protobuf_codec import request_of
from tests.support.exports import write_version
from tests.support.runs import SENTENCES, random_run

pytestmark = pytest.mark.release

LINE = SENTENCES[0].encode()
ROAD = {"protect": b"urls,numbers,tags,placeholders", "glossary": b"fox\tFuchs\nhen\tHenne"}
TRIES = 4  # a machine with other work is slow once
LONGEST_HOLD = 0.05  # seconds of the processor that a thread keeps Python from another one


def units_of(*units):
    """Texts of a size, each of which repeats a unit."""
    return {ascii(unit)[:12]: lambda size, unit=unit: unit * (size // len(unit)) for unit in units}


def numbered(form):
    """A text of a size of different lines."""
    return {form: lambda size: "\n".join(form.replace("#", str(n)) for n in range(size // (len(form) + 4))).encode()}


PHRASES = units_of(b"\n", b" ", b"a\n", b"the ", b"x", b"\xe7\x8c\xab", b"\xc2\xa0", b"fox\n")
CASES = {
    "target_prefix": units_of(b"the ", b"x", b" ", b"\xe7\x8c\xab", b"<b>"),
    "required": PHRASES,
    "forbidden": PHRASES,
    "protect": units_of(b"urls,", b",", b"x"),
    "keep": numbered("k#") | units_of(b"\n", b"k\n", b" "),
    "glossary": numbered("k#\tx") | numbered("#\tx\tpart") | units_of(b"\n", b"k\tx\n", b"x"),
    "language": units_of(b"e", b"-"),
    "format": units_of(b"html", b"x"),
    "output_language": units_of(b"e", b"-"),
}
OF_TEXTS = ("language", "format", "output_language")
LINES = units_of(
    b"the fox ",
    b"x",
    b"1 ",
    b"{x} ",
    b"<b>x</b> ",
    b"<b>",
    b"a %0",
    b"0",
    b")",
    b"<!--",
    b"http://x) ",
    b"{a, plural, one {",
    b"{a, select, x {y}} ",
    b"{",
    b"'{",
    b"a. ",
    b"\xcc\x81",
    b"<p>a. ",
    b"<a b='",
    b"&lt; ",
)
HTML = {"paragraphs": True, "format": b"html"}
LINE_BYTES = 1 << 15
TEXT_BYTES = 1 << 12  # with `paragraphs`, where a sentence that is too long is translated in parts


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    folder = tmp_path_factory.mktemp("priced")
    names = ("serving_default", "translate", "tokenize")
    write_version(random_run(folder / "run"), folder / "1", SearchOptions(beam_size=4, extra_length=12), 64, names)
    version = Version(folder / "1")
    priced(version, text=LINE)  # what is prepared at a first call
    priced(version, text=b"A fox. A hen.", paragraphs=True)
    priced(version, text=LINE, forbidden=b"fox", required=b"hen", glossary=b"fox\tx\tregex", protect=b"urls")
    gc.collect()
    gc.freeze()  # as the server does: a collection of all garbage would hold Python
    return version


BODY = ServerOptions().body_bytes
BODIES = ["[],", "[[[]]],", '"",', "1,", "1.5e1,", '{"a":1},', "{},", "NaN,", '"\\u0041",', '{"a":1.5,"b":[]},']


class Waiting:
    """Within, a thread asks for Python all the time; `longest` is how long the thread that began it held it at most.

    These are seconds of the processor, so that other work of the machine does not count; without those in which the
    asking thread waited for a processor, not for Python.
    """

    def __enter__(self):
        self.is_over, self.longest = threading.Event(), 0.0
        self.clock = time.pthread_getcpuclockid(threading.get_ident())
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()
        return self

    def ask(self):
        while not self.is_over.is_set():
            begun, queued = time.clock_gettime(self.clock), seconds_in_queue()
            time.sleep(0.001)
            held = time.clock_gettime(self.clock) - begun
            self.longest = max(self.longest, held - (seconds_in_queue() - queued))

    def __exit__(self, *exception):
        self.is_over.set()
        self.thread.join()


def seconds_in_queue():
    """How long this thread was ready and had no processor, as Linux tells; 0 if nobody does."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0


def priced(version, **inputs):
    """Answer a request. Returns the seconds of the processor, and those that it held Python at most."""
    signature = signature_named(version.signatures, "translate")
    arrays = {name: np.array([value], None if isinstance(value, bool) else object) for name, value in inputs.items()}
    with Waiting() as waiting:
        begun = time.process_time()
        try:
            arrays = signature.complete(arrays)
            check_bounds(arrays)
            names = has_spans(answered(signature.output_names([]), arrays, False), arrays, False)
            version.run(signature, names, arrays)
        except RequestError:  # that is an answer too
            pass
        seconds = time.process_time() - begun
    return seconds, waiting.longest


def assert_cheap(version, what, name, text_of, most, **more):
    """Check that the price of `most` bytes is at most twice that of half of them, and that nobody waits for Python."""
    prices, waits = [], []
    for _ in range(TRIES):
        (half, _), (whole, waited) = (priced(version, **more, **{name: text_of(size)}) for size in (most // 2, most))
        prices.append(whole - 2.5 * half)
        waits.append(waited)
        if min(prices) <= 0.1 and min(waits) < LONGEST_HOLD:
            break
    what_was = f"{what}: {half:.2f} s, then {whole:.2f} s; Python was held for {min(waits):.3f} s"
    assert min(prices) <= 0.1 and min(waits) < LONGEST_HOLD, what_was
    print(f"\n| {what} | {most:,} | {whole:.2f} s | {1000 * waited:.0f} ms |")


@pytest.mark.parametrize("content", BODIES)
@pytest.mark.parametrize("count", [MOST_VALUES // 4, BODY], ids=["read", "refused"])
def test_a_body_is_read_or_refused_without_keeping_others_from_python(content, count):
    """The largest body of each kind of JSON, and a body of as many values as may be read."""
    body = b'{"inputs": [' + content.encode() * min(count, (BODY - 20) // len(content)) + b"0]}"
    holds = []
    while len(holds) < TRIES and (not holds or holds[-1] >= LONGEST_HOLD):
        with Waiting() as waiting, contextlib.suppress(RequestError):
            parsed(body)
        holds.append(waiting.longest)
    print(f"\n| JSON of {content} | {len(body):,} | | {1000 * min(holds):.0f} ms |")
    assert min(holds) < LONGEST_HOLD


@pytest.mark.parametrize("kind", ["filter", "inputs", "text", "dimensions"])
@pytest.mark.parametrize("count", [MOST_FIELDS - 4, BODY // 3], ids=["read", "refused"])
def test_so_is_a_message_of_grpc(version, kind, count):
    signature, body = signature_named(version.signatures, "translate"), request_of(kind, count).SerializeToString()
    holds = []
    while len(holds) < TRIES and (not holds or holds[-1] >= LONGEST_HOLD):
        with Waiting() as waiting, contextlib.suppress(RequestError):
            codec = ProtobufCodec(parse(PredictRequest, body), 1, 1024)
            signature.output_names(codec.output_names)
            codec.read(signature)
        holds.append(waiting.longest)
    print(f"\n| gRPC of {kind} | {len(body):,} | | {1000 * min(holds):.0f} ms |")
    assert min(holds) < LONGEST_HOLD


@pytest.mark.parametrize("name", CASES)
def test_each_text_that_a_request_may_give_costs_what_its_length_does(version, name):
    assert set(CASES) == set(BOUNDS)
    for unit, text_of in CASES[name].items():
        more = {"text": LINE} | ({"paragraphs": True} if name in OF_TEXTS else {})
        assert_cheap(version, f"`{name}` {unit}", name, text_of, BOUNDS[name].each, **more)


@pytest.mark.parametrize("asked", [{}, {"paragraphs": True}, HTML, ROAD], ids=["plain", "paragraphs", "html", "road"])
@pytest.mark.parametrize("unit", LINES)
def test_a_line_costs_what_its_length_does(version, unit, asked):
    what = f"`text` {unit} with {', '.join(asked) or 'nothing'}"
    assert_cheap(version, what, "text", LINES[unit], TEXT_BYTES if "paragraphs" in asked else LINE_BYTES, **asked)
