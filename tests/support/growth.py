"""How much more time work takes for four times the text: process time, since other programs run beside tests."""

import gc
import time

MOST_GROWTH = 9.0  # of the time if the text is four times as long: 4 if it is linear, 16 if it is quadratic
LITTLE = 0.01  # seconds, below which growth is not measured
ENOUGH = 0.25  # seconds, at which a longer text is not tried


def seconds_of(function, *args):
    """The process time of the fastest of three calls, or of the first that takes ENOUGH."""
    gc.disable()
    try:
        times = []
        for _ in range(3):
            start = time.process_time()
            function(*args)
            times.append(time.process_time() - start)
            if times[-1] > ENOUGH:
                break
    finally:
        gc.enable()
    return min(times)


def growth_of(work, make, size=500, largest=16_000):
    """How much more time `work` takes for four times the text, if it takes enough to be measured; 1 if it does not."""
    growths = []
    for _ in range(3):
        n, before = size, seconds_of(work, make(size))
        while 4 * n <= largest:
            n, earlier = 4 * n, before
            before = seconds_of(work, make(n))
            if before > ENOUGH:
                break
        growths.append(before / max(earlier, LITTLE))
        if growths[-1] < MOST_GROWTH:
            break
    return min(growths)
