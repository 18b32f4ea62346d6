"""What each technique of a recipe is worth, as a table with a paired test."""

from benchmarks.trials.training import Outcome
from keras_transformer.inspection.bleu import RAW_BLEU
from keras_transformer.machine import processor_and_cores
from train.config import RunConfig
from train.data.prepare import load_test_split
from train.evaluation.significance import differences

NOTE = """
Every row has the same updates, seed and tokenizer, and is scored on the validation set, which also chose between the
candidate weights (the last, the averaged, and so on). The difference is to the whole recipe; its p-value is that of
sacreBLEU's paired bootstrap, 1,000 resamples. Each row was trained once: the test knows the sentences' chance, not that
of the seed, which moves BLEU on Multi30k by 0.3 to 0.5. Training minutes are those of the steps, without validations.
"""


def table(recipe: RunConfig, outcomes: list[Outcome], command: str) -> str:
    """Return the table; the first outcome is that of the whole recipe."""
    whole = outcomes[0]
    references = [reference for _, reference in validation_pairs(recipe)]
    lines = [
        "# What the recipe is made of",
        "",
        f"`{command}` on {processor_and_cores()}: {recipe.training.steps:,} updates, seed {recipe.training.seed}.",
        "",
        "| | BLEU on the validation set | difference | p-value | perplexity | training minutes |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for outcome in outcomes:
        change = p_value = ""
        if outcome is not whole:
            [found] = differences(outcome.translations, whole.translations, references, [RAW_BLEU])
            change, p_value = f"{found.ours - found.theirs:+.2f}", found.verdict
        name = ", ".join(outcome.trial.overrides) or "the whole recipe"
        cells = [name, outcome.bleu(), change, p_value, f"{outcome.perplexity:.3f}"]
        cells.append(f"{outcome.train_seconds / 60:.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    signature = whole.run.score("BLEU", "raw text")["signature"]
    return "\n".join([*lines, "", f"BLEU: {signature}", NOTE.rstrip(), ""])


def validation_pairs(recipe: RunConfig) -> list[tuple[str, str]]:
    """The sentence pairs of data.validation."""
    return list(load_test_split(recipe.data.model_copy(update={"test": []})))
