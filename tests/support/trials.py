"""Trials that have ended, without having been trained."""

import pathlib

from benchmarks.trials.training import Outcome, Trial
from train.evaluation.comparison import Run


def outcome(name, bleu, perplexity, translations=("a b c d e",), overrides=()):
    """The Outcome of a trial with this BLEU, plus or minus 1, after two minutes, 90 seconds of them steps."""
    score = {"name": "BLEU", "form": "raw text", "value": bleu, "interval": [bleu - 1, bleu + 1], "signature": "sig"}
    scores = {"scores": [score], "validation_perplexity": perplexity, "parameters": 1_000}
    trial = Trial(name, pathlib.Path("c.toml"), tuple(overrides))
    return Outcome(trial, Run(name, {}, {}, scores, minutes=2.0), list(translations), train_seconds=90.0)
