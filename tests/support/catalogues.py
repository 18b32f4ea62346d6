"""Catalogues of gettext as bytes."""

import struct


def mo_file(messages, header="Content-Type: text/plain; charset=UTF-8\n", charset="utf-8", order="<"):
    """A .mo file of the messages, msgid to msgstr, written from its description in gettext's manual."""
    pairs = sorted(
        (source.encode(charset), target.encode(charset)) for source, target in {"": header, **messages}.items()
    )
    place = 28 + 16 * len(pairs)
    tables, strings = [], b""
    for side in zip(*pairs, strict=True):
        for text in side:
            tables += [len(text), place + len(strings)]
            strings += text + b"\0"
    head = [0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, place]
    return struct.pack(f"{order}{len(head) + len(tables)}I", *head, *tables) + strings
