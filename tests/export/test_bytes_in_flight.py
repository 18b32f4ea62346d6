"""The bound of bytes in flight: what arrives slowly gives way, the oldest first, and nothing else does."""

import asyncio
import contextlib
import time

import pytest

from export.server import bytes_in_flight
from export.server.bytes_in_flight import BytesInFlight
from export.server.errors import Code, RequestError


def test_beyond_the_bound_a_request_is_refused_until_another_has_ended():
    whole = BytesInFlight(100)
    with whole.share() as second:
        with whole.share() as first:
            first.resize(60)
            second.resize(40)
            with pytest.raises(RequestError) as error:
                second.resize(41)
            assert error.value.code is Code.RESOURCE_EXHAUSTED and whole.held == 100
            first.resize(10)
            second.resize(90)
        assert whole.held == 90
    assert whole.held == 0


def test_what_arrives_slowly_gives_way_the_oldest_first(monkeypatch):
    monkeypatch.setattr(bytes_in_flight, "PATIENCE", 0.0)
    whole, ended = BytesInFlight(100), []

    async def arrive(name):
        with whole.share() as share:
            try:
                async with share.arriving(time.monotonic() + 60):
                    share.resize(40)
                    await asyncio.sleep(60)
            except RequestError as error:
                ended.append((name, error.code))

    async def main():
        tasks = [asyncio.create_task(arrive(name)) for name in ("first", "second")]
        await asyncio.sleep(0.01)
        with whole.share() as share:
            share.resize(50)
            await asyncio.sleep(0.01)
            assert ended == [("first", Code.RESOURCE_EXHAUSTED)] and whole.held == 90
            with pytest.raises(RequestError):
                share.resize(101)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    assert whole.held == 0


def test_a_request_that_arrives_slowly_gives_way_to_others_and_not_to_itself(monkeypatch):
    monkeypatch.setattr(bytes_in_flight, "PATIENCE", 0.0)
    whole = BytesInFlight(100)

    async def main():
        with whole.share() as share:
            async with share.arriving(time.monotonic() + 60):
                share.resize(60)
                await asyncio.sleep(0.001)
                with pytest.raises(RequestError):
                    share.resize(101)
                assert share.size == whole.held == 60 and share in whole.arriving

    asyncio.run(main())
    assert whole.held == 0 and not whole.arriving


def test_what_arrives_in_time_does_not_give_way():
    whole = BytesInFlight(100)

    async def main():
        with whole.share() as arriving, whole.share() as other:
            async with arriving.arriving(time.monotonic() + 60):
                arriving.resize(60)
                with pytest.raises(RequestError):
                    other.resize(50)
                await asyncio.sleep(0)
        assert whole.held == 0

    asyncio.run(main())


@pytest.mark.parametrize(("age", "gives_way"), [(0.24, False), (0.26, True)])
def test_only_what_arrives_for_a_quarter_of_a_second_gives_way(age, gives_way):
    whole = BytesInFlight(100)

    async def main():
        with whole.share() as slow, whole.share() as other:
            slow.begun -= age
            with contextlib.suppress(RequestError):
                async with slow.arriving(time.monotonic() + 60):
                    slow.resize(60)
                    with (
                        contextlib.nullcontext() if gives_way else pytest.raises(RequestError, match="try again later")
                    ):
                        other.resize(50)
                    await asyncio.sleep(0.001)
            assert (slow.size, other.size) == ((0, 50) if gives_way else (60, 0))

    asyncio.run(main())
    assert whole.held == 0
