"""Files that were damaged: cut at many places, or with a byte changed."""

import random


def cuts(content, most=200):
    """The content cut at some places, or at each, the last byte among them."""
    places = range(len(content)) if len(content) <= most else sorted(random.Random(1).sample(range(len(content)), most))
    return [content[:place] for place in [*places, len(content) - 1]]


def every_flip(content):
    """The content with the lowest or the highest bit of one byte changed, at each place."""
    for place, byte in enumerate(content):
        for bit in (1, 128):
            yield content[:place] + bytes([byte ^ bit]) + content[place + 1 :]


def flips(content, number=200):
    """The content with one other byte, at different places."""
    chance = random.Random(2)
    for _ in range(number):
        place = chance.randrange(len(content))
        yield content[:place] + bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :]
