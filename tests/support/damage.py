"""Files that were damaged: cut at many places, or with a byte changed."""

import random


def cuts(content, most=200):
    """The content cut at some places, or at each, the last byte among them."""
    places = range(len(content)) if len(content) <= most else sorted(random.Random(1).sample(range(len(content)), most))
    return [content[:place] for place in [*places, len(content) - 1]]


def flips(content, number=200):
    """The content with one other byte, at different places."""
    chance = random.Random(2)
    for _ in range(number):
        place = chance.randrange(len(content))
        yield content[:place] + bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :]
