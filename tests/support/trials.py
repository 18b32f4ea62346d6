"""Trials that have ended, without having been trained."""

from benchmarks.trials.outcome import Outcome


def outcome(bleu, perplexity, translations=("a b c d e",), config="", machine="a machine, 2 cores"):
    """An Outcome with this BLEU, plus or minus 1, after 60 steps of 1,500 target tokens: 90 seconds of two minutes."""
    score = {"name": "BLEU", "form": "raw text", "value": bleu, "interval": [bleu - 1, bleu + 1], "signature": "sig"}
    scores = {"scores": [score], "validation_perplexity": perplexity, "parameters": 1_000}
    curve = [[0.25, bleu / 2], [0.5, bleu]]
    return Outcome(machine, ["c0ffee"], config, scores, 60, 1_000.0, 90.0, 2.0, curve, list(translations), 90_000.0)
