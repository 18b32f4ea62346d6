"""transformers opens an exported T5, mT5, ByT5 or MADLAD-400, and computes, divides and translates as the run does."""

import numpy as np
import pytest

import keras_transformer as kt
from export.huggingface.t5 import Pieces
from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run, save_run
from keras_transformer.translation.translator import Translator
from tests.support.exchange import exported
from tests.support.huggingface import padded
from tests.support.imported import logits
from tests.support.marian import lines
from tests.support.peers import Peer, needs
from tests.support.t5 import BYT5, KINDS, MADLAD, MT5, STRONG, T5, t5_folder

pytestmark = [pytest.mark.release, needs("transformers", "torch")]
transformers, torch = Peer("transformers"), Peer("torch")
CLOSE, EXTRA = 1e-4, 20


def tuned(folder, kind, strength):
    """A run whose matrices of pieces are those of no import."""
    write_run(import_folder(t5_folder(folder / "there", kind, strength)), folder / "run", lines("test.en")[:3])
    model, tokenizer = load_run(folder / "run")
    chance = np.random.default_rng(2)
    for name in ("embedding",) if kind == T5 else ("embedding", "logits"):
        matrix = np.array(model.get_layer(name).matrix)
        model.get_layer(name).matrix.assign(matrix + 0.02 * chance.normal(size=matrix.shape) * (matrix != 0))
    save_run(model, tokenizer, folder / "tuned", lines("test.en")[:3], RunFolder(folder / "run").inference())
    return folder / "tuned"


class Both:
    """A run, and transformers' model and tokenizer of its export."""

    def __init__(self, folder, kind, strength):
        run = tuned(folder, kind, strength)
        result = exported(run, folder / "out")
        assert result.exit_code == 0, result.output
        model_class = transformers.MT5ForConditionalGeneration if kind == MT5 else transformers.AutoModelForSeq2SeqLM
        self.run, self.tokenizer = run, transformers.AutoTokenizer.from_pretrained(folder / "out")
        self.theirs = model_class.from_pretrained(folder / "out").eval()
        self.model, self.ours = load_run(run)
        self.pieces = Pieces.of(self.ours)
        self.here = np.array(self.pieces.numbers)
        self.there = {number: place for place, number in enumerate(self.pieces.numbers)}


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_divides_a_line_and_computes_logits_as_the_run_does(kind, tmp_path):
    both, chance, compared = Both(tmp_path, kind, 1.2), np.random.default_rng(3), 0
    surfaces = both.ours.surfaces()
    for line in lines("test.en")[:20]:
        expected = [*both.ours.encode(line), EOS]
        if kind == BYT5 or not any(surface.startswith(b"<0x") for surface in (surfaces[each] for each in expected)):
            ids = both.tokenizer(line)["input_ids"]
            assert both.here[ids].tolist() == expected
            compared += 1
        output = chance.integers(3, len(both.here), 20)
        start = both.theirs.config.decoder_start_token_id
        with torch.no_grad():
            theirs = both.theirs(
                input_ids=torch.tensor([[both.there[number] for number in expected]]),
                decoder_input_ids=torch.tensor([[start, *output]]),
            ).logits[0]
        ours = logits(both.model, expected, [BOS, *both.here[output]])
        np.testing.assert_allclose(ours[:, both.here], theirs.numpy(), atol=CLOSE)
    assert compared > 10


@pytest.mark.parametrize("kind", KINDS)
def test_generate_translates_as_the_run_does(kind, tmp_path):
    """Without a length penalty: with one, a beam of transformers goes on when hypotheses have finished."""
    both = Both(tmp_path, kind, STRONG)
    texts, told = lines("test.en")[:50], {"target_language": "de"} if kind in (T5, MADLAD) else {}
    for beam_size in (1, 4):
        options = kt.SearchOptions(beam_size, 0.0, EXTRA, length_normalization="tokens")
        translator = Translator.load(both.run, options)
        marks = translator._mark_reader.marks(*translator.languages.chosen(**{k[:6]: v for k, v in told.items()}))
        rows = [[both.there[each] for each in marks.around(translator.tokenizer.encode(text))] for text in texts]
        batch = torch.tensor(padded(rows, both.pieces.ids[PAD]))
        with torch.no_grad():
            outputs = both.theirs.generate(
                batch,
                attention_mask=batch != both.pieces.ids[PAD],
                num_beams=beam_size,
                max_length=None,
                max_new_tokens=batch.shape[1] + EXTRA,
                length_penalty=0.0,
            )
        compared, end = 0, both.pieces.ids[EOS]
        for row, output, found in zip(rows, outputs.tolist(), translator.translate(texts, **told), strict=True):
            expected = output[1 : output.index(end, 1) + 1] if end in output[1:] else []
            if expected and len(expected) < len(row) + EXTRA - 1:
                assert both.here[expected].tolist() == list(found.ids)
                compared += 1
        assert compared > 5
