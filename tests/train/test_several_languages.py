"""One model, several languages: a tag decides which a sentence is translated into (Johnson et al. 2017)."""

import json

import num2words
import pytest

from keras_transformer.ground.errors import UserError
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.runs import CONFIG
from train.__main__ import app

pytestmark = pytest.mark.slow

LANGUAGES = ("de", "fr", "es")
NUMBERS = range(20)


@pytest.mark.release
def test_a_model_learns_three_languages_and_translates_into_the_one_that_is_asked_for(tmp_path):
    entries = []
    for language in LANGUAGES:
        pairs = [(num2words.num2words(n), num2words.num2words(n, lang=language)) for n in NUMBERS]
        path = tmp_path / f"{language}.tsv"
        path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs) * 20, encoding="utf-8")
        entries.append(f'{{files = "{path}", source_language = "en", target_language = "{language}"}}')
    rest = CONFIG[CONFIG.index("[tokenizer]") :].replace("vocab_size = 300", "vocab_size = 340")
    (tmp_path / "run.toml").write_text(
        f'run_folder = "{tmp_path}/run"\n[data]\nsource = "files"\ntrain = [{", ".join(entries)}]\n'
        f"validation = [{', '.join(entries)}]\n{rest}",
        encoding="utf-8",
    )
    changes = ["training.steps=300", "training.dropout=0.0", "training.label_smoothing=0.0", "training.row_length=32"]
    changes += ["model.d_model=32", "model.d_ff=64", 'model.norm="pre"', "training.learning_rate_factor=1.0"]
    changes += ["training.warmup_steps=100", "training.validate_every=300", "training.checkpoint_every=300"]
    changes += ["training.average_checkpoints=1", "training.histograms_every=0", "training.picture_sentences=0"]
    result = invoke(app, tmp_path / "run.toml", *(part for change in changes for part in ("--set", change)))
    assert result.exit_code == 0, result.output
    translator = Translator.load(tmp_path / "run")
    pieces = translator.tokenizer.pieces()
    assert {f"<2{language}>" for language in LANGUAGES} <= set(pieces), json.dumps(pieces)
    right = 0
    for language in LANGUAGES:
        sources = [f"<2{language}>{num2words.num2words(n)}" for n in NUMBERS]
        found = [one.text for one in translator.translate(sources)]
        lines = [num2words.num2words(n) for n in NUMBERS]
        asked = translator.translate(lines, source_language="en", target_language=language)
        assert [one.text for one in asked] == found  # the tag in the line, or the language beside it
        right += sum(text == num2words.num2words(n, lang=language) for text, n in zip(found, NUMBERS, strict=True))
    with pytest.raises(UserError, match="this model writes de, fr, es"):
        translator.translate(lines, target_language="it")
    assert right >= 0.9 * len(LANGUAGES) * len(NUMBERS), right
