"""A request to stop: the first signal asks, the second ends the process; several workers go by the sum of all."""

import os
import signal

import pytest

from keras_transformer.ground.errors import Interrupted
from train.data.sources.numbers import spell
from train.loop.stopping import StopRequest, interrupted_by_signals


@pytest.fixture(autouse=True)
def foreground():
    """A background job of a script ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_makes_the_request_and_the_handlers_come_back(number):
    before = signal.getsignal(number)
    with StopRequest().listening() as request:
        assert not request.is_made
        os.kill(os.getpid(), number)
        assert request.is_made
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # a second Ctrl-C ends the process
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_work_that_is_soon_done_again_ends_at_once(number):
    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match="^the report is not written$"):
        with interrupted_by_signals("the report is not written"):
            os.kill(os.getpid(), number)
            pytest.fail("it goes on")
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_library_does_not_take_a_signal_for_an_error_of_its_own(number, monkeypatch):
    monkeypatch.setattr("num2words.num2words", lambda *_, **named: os.kill(os.getpid(), number))
    with pytest.raises(Interrupted, match="^the report is not written$"):
        with interrupted_by_signals("the report is not written"):
            spell(1, "de")


@pytest.mark.parametrize("within", [lambda: StopRequest().listening(), lambda: interrupted_by_signals("stopped")])
def test_a_signal_that_the_process_was_started_to_ignore_is_ignored(within):
    """As Ctrl-C is by what a script started in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with within() as request:
            os.kill(os.getpid(), signal.SIGINT)
            if request:
                os.kill(os.getpid(), signal.SIGTERM)
                assert request.is_made
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("stop_requests", [0.0, 1.0, 2.0])
def test_a_worker_goes_by_its_own_request_if_it_is_alone_and_else_by_the_sum(is_made, stop_requests):
    for is_alone in (True, False):
        request = StopRequest(is_alone)
        request.is_made = is_made
        assert request.ends_training(stop_requests) is (is_made if is_alone else stop_requests > 0)
