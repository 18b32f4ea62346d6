"""Trials: configurations whose text is there without an installed corpus, and outcomes that nobody trained."""

import json
import re

from benchmarks.trials.outcome import KEPT, Outcome, kept_rows, write_outcome


def with_text(config, folder):
    """A copy of a configuration, in `folder`, whose [data] names 200 pairs of three words. Returns its path."""
    for side, words in (("en", "one two three"), ("de", "eins zwei drei")):
        (folder / f"text.{side}").write_text(f"{words}\n" * 200, encoding="utf-8")
    files = json.dumps([[str(folder / "text.en"), str(folder / "text.de")]])
    data = '[data]\nsource = "files"\nsource_language = "en"\ntarget_language = "de"\n'
    data += f"train = {files}\nvalidation = {files}\n\n"
    path = folder / "with_text.toml"
    path.write_text(re.sub(r"\[data\].*?(?=^\[)", data, config.read_text(encoding="utf-8"), flags=re.S | re.M), "utf-8")
    return path


def outcome(bleu, perplexity, translations=("a b c d e",), config="", machine="a machine, 2 cores"):
    """An Outcome with this BLEU, plus or minus 1, after 60 steps of 1,500 target tokens: 90 seconds of two minutes."""
    score = {"name": "BLEU", "form": "raw text", "value": bleu, "interval": [bleu - 1, bleu + 1], "signature": "sig"}
    scores = {"scores": [score], "validation_perplexity": perplexity, "parameters": 1_000}
    curve = [[0.25, bleu / 2], [0.5, bleu]]
    return Outcome(machine, ["c0ffee"], config, scores, 60, 1_000.0, 90.0, 2.0, curve, list(translations), 90_000.0)


def forget(name, folder):
    """Take the row of a trial out of the file of a table."""
    rows = kept_rows(folder)
    del rows[name]
    (folder / KEPT).unlink()
    for other, row in rows.items():
        write_outcome(Outcome(**row), other, folder)
