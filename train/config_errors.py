"""What pydantic finds wrong in a run configuration, as sentences: the key, what was found, what it must be."""

import difflib

MUST_BE = {  # by the type of the finding, with names from its context; strict types: "100" is no number
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a string",
    "list_type": "a list",
    "model_type": "a section with keys of its own",
    "model_attributes_type": "a section with keys of its own",
    "too_short": "a list with at least {min_length} entry",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "below {lt}",
    "literal_error": "{expected}",
    "union_tag_invalid": "one of {expected_tags}",
}


def sentence(finding, where, known_keys):
    """One of the `errors()` of a pydantic.ValidationError as a sentence.

    where: function from a key ("training.steps") to the file or option that set it. known_keys: all there are.
    """
    kind, found, context = finding["type"], finding["input"], finding.get("ctx", {})
    place, source = [str(part) for part in finding["loc"]], ""
    if place[0] == "data" and len(place) > 2:  # pydantic names the branch of the union: ("data", "files", "train")
        source = f" where data.source is {place.pop(1)!r}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        place, found = ["data", "source"], context.get("tag")
    key = ".".join(place)
    if kind == "extra_forbidden":
        likely = _likely(key, known_keys)
        return f"{where(key)}: there is no key {key}{source}" + (f"; did you mean {likely}?" if likely else ".")
    if kind in ("missing", "union_tag_not_found"):
        return f"{where(key)}: {key} is missing{source}."
    if kind == "value_error":
        return f"{where(key)}: {key}: {context['error']}."
    return f"{where(key)}: {key} is {found!r}; it must be {MUST_BE.get(kind, finding['msg']).format(**context)}."


def _likely(key, known_keys):
    """The key of the same name in another section, or else the one that looks most like it; None if none does."""
    if key in known_keys:  # of another data.source
        return None
    same_name = [known for known in known_keys if known.rpartition(".")[2] == key.rpartition(".")[2]]
    return next(iter(same_name or difflib.get_close_matches(key, known_keys, n=1)), None)
