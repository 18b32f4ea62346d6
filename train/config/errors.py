"""One sentence per mistake in a run configuration: where it is, the key, what was found, what it should be."""

import difflib
import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

LONGEST = 200  # characters of a value in a message
OF_TABLES = ("model_type", "model_attributes_type", "dict_type")  # pydantic's names for a value that is no table
BRANCHES = ("pair", "tsv", "table")  # names that pydantic puts between the number of an entry and its key


def sentence(finding: dict[str, Any], where: Callable[[str], str], known_keys: Collection[str]) -> str:
    """One of the `errors()` of a pydantic.ValidationError as a sentence.

    where: from a key ("training.steps") to the file or option that set it. known_keys: all keys of a configuration.
    """
    kind, value = finding["type"], finding["input"]
    place, source = [str(part) for part in finding["loc"]], ""
    if place[0] == "data" and len(place) > 1:  # pydantic names the branch of the union: ("data", "files", "train")
        source = f" if data.source is {place.pop(1)!r}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):  # found in the section `data`, about its key `source`
        place, value = ["data", "source"], finding.get("ctx", {}).get("tag")
    key = ".".join(part for part in place if part not in BRANCHES)
    if kind == "extra_forbidden":
        likely = _likely(key, known_keys)
        return f"{where(key)}: there is no key {key}{source}" + (f"; did you mean {likely}?" if likely else ".")
    if kind == "none_required":
        return f"{where(key)}: {key} has no use{source}: leave it out."
    if kind in ("missing", "union_tag_not_found"):
        return f"{where(key)}: {key} is missing{source}."
    if kind == "value_error":  # one of our own validators, whose message has the value in it
        return f"{where(key)}: {key}: {finding['ctx']['error']}."
    if kind == "union_tag_invalid":
        return f"{where(key)}: {key} is {value!r}; it must be one of {finding['ctx']['expected_tags']}."
    message = "input should be a table of keys" if kind in OF_TABLES else finding["msg"]
    shown = repr(value)
    if len(shown) > LONGEST:
        shown = f"{shown[:LONGEST]}..."
    return f"{where(key)}: {key} is {shown}: {message[0].lower()}{message[1:]}."


def set_by(key: str, path: str | os.PathLike, overrides: Sequence[str]) -> str:
    """The last override that sets the key, one inside it, or a value that has it inside; `path` if there is none."""
    inside = f"{key}."
    names = [(f"{override.partition('=')[0].strip()}.", override) for override in overrides]
    options = [override for name, override in names if name.startswith(inside) or inside.startswith(name)]
    return f"--set {options[-1]}" if options else str(path)


def _likely(key: str, known_keys: Collection[str]) -> str | None:
    """The key of the same name in another section, or else the one that looks most like it; None if there is none."""
    if key in known_keys:  # of another data.source
        return None
    name = key.rpartition(".")[2]
    same_name = [known for known in known_keys if known.rpartition(".")[2] == name]
    similar = difflib.get_close_matches(key, known_keys, n=1)
    return next(iter(same_name or similar), None)
