"""A value of every option of a search that is not its default; all of them go together."""

OTHER_VALUES = {
    "beam_size": 3,
    "length_penalty": 1.5,
    "extra_length": 5,
    "length_normalization": "tokens",
    "coverage_penalty": 0.25,
    "shortlist": "on",
    "n_best": 2,
    "sibling_penalty": 1.25,
    "min_length": 4,
    "max_length": 9,
    "no_repeat_ngram_size": 6,
    "repetition_penalty": 1.25,
    "temperature": 0.5,
    "top_k": 7,
    "top_p": 0.75,
    "seed": 8,
}
