"""table3.md: the rows that were trained beside the figures of the paper."""

from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.paper.table3_rows import ROWS, SEEDS, Row, overrides_of
from benchmarks.trials.outcome import Outcome, commits_sentence, empty_sentence, machines, mark
from train.config.run import RunConfig

HEAD = (
    "| | N | d_model | d_ff | h | d_k | P_drop | epsilon_ls | PPL | BLEU | parameters | train seconds | paper: PPL "
    "| BLEU | parameters |"
)

NOTE = """
Each row is the row of Table 3 in proportion: what the paper changes by a factor against its base model, the row changes
by that factor against the row (base) of this table (layers are rounded). A cell is empty if it has the value of the
base. All rows have the same pairs, tokenizer, steps and schedule, and the same seed but where another one is named.
PPL (perplexity per piece, without label smoothing) and BLEU (raw text, cased), each with its 95 per cent interval, are
of the validation set, which also chose between the last and the averaged weights. Train seconds are those of the steps:
compilation included, validations and checkpoints not; compare them on one machine only, which the letter names if there
are several. Each row was trained once, (base) with other seeds too. The paper's figures are of newstest2013, after
100,000 steps on 4.5 million pairs (300,000 for big).
"""


def table(base: RunConfig, outcomes: dict[str, Outcome], command: str) -> str:
    """Return table3.md. Rows without an outcome are left out."""
    norm = base.transformer_config(base.tokenizer.vocab_size).norm
    rows = [row for row in ROWS if row.name in outcomes]
    lines = [
        "# Table 3, scaled",
        "",
        f"`{command}` on {machines(outcomes.values())}: {base.training.steps:,} steps of "
        f"{base.training.tokens_per_batch:,} target positions, {norm}-norm, seed "
        f"{base.training.seed}; {len(rows)} of {len(ROWS)} rows trained.",
        "",
        HEAD,
        "|---|" + "---:|" * (HEAD.count("|") - 2),
    ]
    for row in rows:
        of_row = {row.name: outcomes[row.name], **(seeds_in(outcomes) if row.name == "base" else {})}
        lines += [
            table_row(row, base, outcome, mark(outcome, outcomes.values()), SEEDS.get(name))
            for name, outcome in of_row.items()
        ]
    if outcome := next(iter(outcomes.values()), None):
        lines += ["", f"BLEU: {outcome.score('BLEU')['signature']}"]
    for sentence in filter(None, (empty_sentence(outcomes), commits_sentence(outcomes))):
        lines += ["", sentence]
    lines += ["", *agreement(outcomes), NOTE.strip()]
    return "\n".join(lines) + "\n"


def table_row(row: Row, base: RunConfig, outcome: Outcome, machine: str = "", seed: int | None = None) -> str:
    """One line of the table. machine: the mark of the one that trained it. seed: if it is not that of the others."""
    own = base.transformer_config(base.tokenizer.vocab_size)
    changed = dict(setting.split("=") for setting in overrides_of(row, own))
    is_base = row.name == "base" and seed is None
    name = f"({row.group}) {row.varied}" if row.group else row.name

    def cell(key: str, value: object) -> str:
        return str(value) if is_base else changed.get(key, "")

    cells = [
        name if seed is None else f"{name}, seed {seed}",
        cell("model.encoder_layers", own.encoder_layers),
        cell("model.d_model", own.d_model),
        cell("model.d_ff", own.d_ff),
        cell("model.num_heads", own.num_heads),
        cell("model.key_dim", own.d_k),
        cell("training.dropout", own.dropout),
        cell("training.label_smoothing", own.label_smoothing),
        outcome.perplexity_text(),
        outcome.bleu(),
        f"{outcome.parameters:,}",
        f"{outcome.train_seconds:,.0f}{machine}",
    ]
    paper = [f"{row.perplexity:.2f}", f"{row.bleu}", f"{row.millions} million" if row.millions else ""]
    cells += paper if seed is None else [""] * len(paper)
    return "| " + " | ".join(cells) + " |"


def seeds_in(outcomes: dict[str, Outcome]) -> dict[str, Outcome]:
    """What base with other seeds came to."""
    return {name: outcomes[name] for name in SEEDS if name in outcomes}


def agreement(outcomes: dict[str, Outcome]) -> list[str]:
    """Which rows go the paper's way: better or worse than base, by perplexity and by BLEU, and how many of them."""
    noise = noise_in(outcomes)
    signs = {row.name: signs_of(row, outcomes, noise) for row in ROWS[1:] if row.name in outcomes and noise}
    if not signs:
        return []
    measured = (
        f"= says that a difference is within the noise: {len(seeds_in(outcomes)) + 1} trainings of base that differ in "
        f"nothing but the seed are up to {noise.perplexity:.2f} PPL and {noise.bleu:.2f} BLEU apart."
        if seeds_in(outcomes)
        else "How far another seed moves base has not been measured, so any difference here has a sign."
    )
    lines = [f"Against base, better (+) or worse (-), here and in the paper. {measured}", ""]
    lines += ["| | PPL | paper | BLEU | paper |", "|---|:---:|:---:|:---:|:---:|"]
    lines += [f"| {name} | {' | '.join(row_signs)} |" for name, row_signs in signs.items()]
    by_perplexity = counted((row_signs.perplexity, row_signs.paper_perplexity) for row_signs in signs.values())
    by_bleu = counted((row_signs.bleu, row_signs.paper_bleu) for row_signs in signs.values())
    return [*lines, "", f"Of {len(signs)} rows, by PPL {by_perplexity}; by BLEU {by_bleu}.", ""]


def counted(pairs: Iterable[tuple[str, str]]) -> str:
    """How many signs are the paper's, of pairs of a sign here and one there."""
    pairs = list(pairs)
    clear = [ours == theirs for ours, theirs in pairs if ours != "="]
    return (
        f"{sum(clear)} go the paper's way, {len(clear) - sum(clear)} do not, and {len(pairs) - len(clear)} are within "
        "the noise"
    )


class Noise(NamedTuple):
    """How far two trainings of base are apart that differ in their seed alone."""

    perplexity: float
    bleu: float


def noise_in(outcomes: dict[str, Outcome]) -> Noise | None:
    """None if base has not been trained; zeros if no other seed has."""
    if "base" not in outcomes:
        return None
    again = [outcomes["base"], *seeds_in(outcomes).values()]
    return Noise(spread(one.perplexity for one in again), spread(bleu_of(one) for one in again))


def spread(values: Iterable[float]) -> float:
    """Between the least and the greatest, in hundredths as the table has them."""
    values = list(values)
    return round(max(values) - min(values), 2)


class Signs(NamedTuple):
    """How a row stands against base."""

    perplexity: str
    paper_perplexity: str
    bleu: str
    paper_bleu: str


def signs_of(row: Row, outcomes: dict[str, Outcome], noise: Noise) -> Signs:
    """The signs of a row that was trained."""
    outcome, ours, paper = outcomes[row.name], outcomes["base"], ROWS[0]
    return Signs(
        sign(ours.perplexity - outcome.perplexity, noise.perplexity),
        sign(paper.perplexity - row.perplexity),
        sign(bleu_of(outcome) - bleu_of(ours), noise.bleu),
        sign(row.bleu - paper.bleu),
    )


def bleu_of(outcome: Outcome) -> float:
    """BLEU of raw text; 0 if it is undefined."""
    return outcome.score("BLEU")["value"] or 0.0


def sign(gain: float, limit: float = 0.0) -> str:
    """What a gain over base is called: "=" if it is at most `limit`, up or down, in hundredths as the table has it."""
    return "=" if round(abs(gain), 2) <= limit else "+" if gain > 0 else "-"
