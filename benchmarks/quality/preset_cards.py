"""Write the heads of the cards in presets/, which the hub reads: `python -m benchmarks.quality.preset_cards`.

The scores are those of the card's own lines, as `keras-transformer evaluate` prints them, such as
`- BLEU 40.79 ± 1.58  raw text  nrefs:1|...`. All other keys of a head are written by hand and stay.
"""

import pathlib
import re
from collections.abc import Iterator

from huggingface_hub import EvalResult, ModelCard

from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.ground.errors import UserError

PRESETS = pathlib.Path(__file__).parents[2] / "presets"
LIBRARY = "keras-transformer-mt"
TEST_SETS = {  # preset -> what its scores are of: the name, and the data set of the hub, or what stands for one
    "multi30k_en_de": ("Multi30k, test_2016_flickr", "bentrevett/multi30k"),
    "software_en_de": ("text of free software, Debian 12", "software"),
}
SCORE = re.compile(r"^- (BLEU|chrF|TER) ([\d.]+) ± ([\d.]+) +(raw text(?:, lower-cased)?) +(nrefs:\S+)$", re.MULTILINE)

app = command_app()


def results_of(text: str, preset: str) -> Iterator[EvalResult]:
    """Yield the scores of a card's text as the hub has them in a model-index."""
    dataset_name, dataset_type = TEST_SETS[preset]
    for name, value, half, form, signature in SCORE.findall(text):
        yield EvalResult(
            task_type="translation",
            dataset_name=dataset_name,
            dataset_type=dataset_type,
            dataset_split="test",
            metric_type=name.lower(),
            metric_name=f"{name}, {form}, ± {half}",
            metric_value=float(value),
            metric_args={"signature": signature},
        )


def with_head(content: str, preset: str) -> str:
    """Return the card of a preset with a head that has its scores. Raises UserError for a card without scores."""
    card = ModelCard(content)
    results = list(results_of(card.text, preset))
    if not results:
        raise UserError(f"The card of {preset} has no line such as `- BLEU 40.79 ± 1.58  raw text  nrefs:1|...`.")
    card.data.library_name, card.data.model_name, card.data.eval_results = LIBRARY, preset, results
    card.data.metrics = list(dict.fromkeys(result.metric_type for result in results))
    return str(card)


@app.command()
def main():
    """Write the head of each card in presets/ from the scores in its text."""
    with exit_codes():
        for preset in TEST_SETS:
            path = PRESETS / preset / "README.md"
            path.write_text(with_head(path.read_text("utf-8"), preset), "utf-8")
            print(path)


if __name__ == "__main__":
    app()
