"""The model card of a Hugging Face folder: README.md, whose head in YAML the hub reads.

The keys are those of the hub's page "Model Cards" (huggingface.co/docs/hub/model-cards).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.notations import json_of, toml_of
from keras_transformer.pieces.language_marks import NO_LANGUAGES, SOURCE, TARGET
from keras_transformer.pieces.language_marks import Languages as Told
from keras_transformer.pieces.languages import short_code
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import SearchOptions

from .families import MARIAN, Family, family_of
from .settings import Languages
from .t5 import words_before

METRICS = {"BLEU": "bleu", "chrF": "chrf"}  # the hub's names of metrics that a run has

CARD = """\
# {name}

A Transformer that translates{languages}, in the format of Hugging Face's {model}.

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}"{of_source})
model = AutoModelForSeq2SeqLM.from_pretrained("{name}")
batch = tokenizer(["{before}A sentence.", "{before}Another one."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch{of_target}), skip_special_tokens=True))
```

{scores}## What differs from the run

{epsilon}- {positions}
- {penalty}
- A beam search of Hugging Face continues {beam_size} hypotheses until enough have finished; in the run each finished
  one takes a place of the beam. With `num_beams=1`, or `length_penalty=0.0`, outputs that end before the limit are the
  same but for ties.
- The run ends an output {extra_length} tokens after the length of its source; `max_length` is one limit for all.
- {special}
"""
SCORES = """\
## Scores

{split}, {sentences:,} sentences, beam {beam_size}, length penalty {length_penalty}; each with its 95 % interval.

| score | of | value | signature of sacreBLEU |
|---|---|---|---|
{rows}

"""


def model_card(
    name: str,
    run: RunFolder,
    config: TransformerConfig,
    options: SearchOptions,
    license: str | None,
    told: Told | None = None,
) -> str:
    """Return the README.md of the model `name`.

    license: as the hub calls it; None if it is not known. told: the languages with their defaults; None: those of the
    run.
    """
    languages, scores, told = languages_of(run), scores_of(run), told or run.inference().languages
    family = family_of(config, told)
    codes = all_codes(told) or [code for code in languages if code]
    return front_matter(name, codes, scores, license, family.model_type) + CARD.format(
        name=name,
        languages=f" {languages.source} into {languages.target}" if all(languages) else "",
        model=family.model_class,
        special=family.special,
        **usage(told),
        scores=scores_table(scores),
        epsilon=epsilon_note(config, family),
        positions=positions_note(config, family),
        penalty=penalty_note(options),
        beam_size=options.beam_size,
        extra_length=options.extra_length,
    )


def usage(told: Told) -> dict[str, str]:
    """Return how a model is told its languages in the code of a card: the first and the last, for example."""
    if not told.needs(SOURCE):
        code = told.default(TARGET) or next(iter(told.target), "")
        return {"of_source": "", "of_target": "", "before": words_before(told, code)}
    source, target = next(iter(told.source)), list(told.target)[-1]
    forced = f', forced_bos_token_id=tokenizer.convert_tokens_to_ids("{told.target[target]}")'
    return {
        "of_source": f', src_lang="{source}"',
        "of_target": forced if told.target_first else "",
        "before": "",
    }


def all_codes(told: Told) -> list[str]:
    """Return the languages that a model reads and writes, as the hub calls them: by their short codes."""
    return sorted({short_code(code) for side in (told.source, told.target) for code in side})


def epsilon_note(config: TransformerConfig, family: Family) -> str:
    if family.epsilon is None:
        return ""
    if config.norm_epsilon == family.epsilon:
        return f"- LayerNorm's epsilon is {family.epsilon} in both.\n"
    return (
        f"- LayerNorm's epsilon is {family.epsilon} in MarianMTModel, which has no setting for it, and "
        f"{config.norm_epsilon} in the\n  run. So logits differ, by about 1e-4.\n"
    )


def positions_note(config: TransformerConfig, family: Family) -> str:
    if family.positions is None:
        return "Neither has a longest text."
    limit = f"A source, and an output, has at most {config.position_limit or family.positions:,} tokens"
    if family is not MARIAN:
        return limit
    if config.sinusoids == "paper":
        return f"{limit}; the run has no limit."
    return (
        f"{limit}; the run has no limit.\n"
        "- The table of positions is in model.safetensors, since MarianMTModel computes other sinusoids. Its\n"
        "  `save_pretrained` leaves the table out: copy this folder, and do not save the model again."
    )


def penalty_note(options: SearchOptions) -> str:
    if options.length_normalization == "tokens":
        return "Both divide the log-probability of a hypothesis by length^`length_penalty`."
    return (
        "`generate` divides the log-probability of a hypothesis by length^`length_penalty`, the run by\n"
        f"  ((5 + length) / 6)^{options.length_penalty}, so a beam search may choose another hypothesis."
    )


def languages_of(run: RunFolder) -> Languages:
    """Return the pair that the inference.json of a run tells; of an older run, the one that its config.toml names."""
    told = run.inference().languages
    if told != NO_LANGUAGES:
        return Languages(*(next(iter(side)) if len(side) == 1 else None for side in (told.source, told.target)))
    try:
        data = toml_of(run.config.read_text(encoding="utf-8-sig"))["data"]
        names = [data.get(f"{side}_language") for side in ("source", "target")]
    except (OSError, ValueError, LookupError, AttributeError):
        return Languages()
    return Languages(*(name if isinstance(name, str) and name else None for name in names))


def scores_of(run: RunFolder) -> dict[str, Any]:
    """Return what the scores.json of a run holds, {} if there is none; scores without a value are left out."""
    try:
        values = json_of(run.scores.read_text(encoding="utf-8"))
        scores = [score for score in values["scores"] if score["value"] is not None and score["name"] in METRICS]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return values | {"scores": scores} if scores else {}


def scores_table(scores: Mapping[str, Any]) -> str:
    if not scores:
        return ""
    rows = "\n".join(
        "| {} | {} | {:.2f}{} | {} |".format(
            *(score["name"], score["form"], score["value"], interval_of(score)),
            score["signature"].replace("|", "\\|"),  # as a cell of a table
        )
        for score in scores["scores"]
    )
    names = ("split", "sentences", "beam_size", "length_penalty")
    return SCORES.format(rows=rows, **{name: scores[name] for name in names})


def interval_of(score: Mapping[str, Any]) -> str:
    """Return the interval of a score as text, which may be missing."""
    return f" ({score['interval'][0]:.2f} to {score['interval'][1]:.2f})" if score.get("interval") else ""


def front_matter(name: str, codes: Sequence[str], scores: Mapping[str, Any], license: str | None, tag: str) -> str:
    """Return the head of the card. Its strings are written as JSON, which YAML includes."""
    lines = ["library_name: transformers", "pipeline_tag: translation"]
    lines += ["language:", *(f"- {quoted(code)}" for code in dict.fromkeys(codes))] * bool(codes)
    if license:
        lines.append(f"license: {quoted(license)}")
    lines += ["tags:", "- translation", f"- {tag}"]
    if scores:
        lines += ["metrics:", *dict.fromkeys(f"- {METRICS[score['name']]}" for score in scores["scores"])]
        lines += model_index(name, scores)
    return "\n".join(["---", *lines, "---", "", ""])


def model_index(name: str, scores: Mapping[str, Any]) -> Iterable[str]:
    """Yield the lines of the head that tell the hub what the model scores."""
    split = quoted(f"{scores['split']} of the run")
    yield from ("model-index:", f"- name: {quoted(name)}", "  results:")
    yield from ("  - task: {type: translation}", f"    dataset: {{name: {split}, type: {split}}}", "    metrics:")
    for score in scores["scores"]:
        label = f"{score['name']}, {score['form']}{interval_of(score)}"
        yield f"    - {{type: {METRICS[score['name']]}, value: {score['value']:.2f}, name: {quoted(label)}}}"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
