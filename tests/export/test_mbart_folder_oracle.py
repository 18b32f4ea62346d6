"""transformers opens an exported mBART, and computes, divides and translates as the run does."""

import numpy as np
import pytest

import keras_transformer as kt
from export import __main__ as command
from export.huggingface.m2m import Pieces
from keras_transformer.ground.tokens import BOS
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run, save_run
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.m2m import STRONG
from tests.support.marian import lines
from tests.support.mbart import FIFTY, ONE_TARGET, PAIR, UNSCALED, mbart_folder
from tests.support.peers import Peer, needs

pytestmark = [pytest.mark.release, needs("transformers", "torch")]
transformers, torch = Peer("transformers"), Peer("torch")
CLOSE = 6e-4  # of weights that are STRONG, so that rounding is too
EXTRA = 20


def tuned(folder, kind):
    """A run whose weights are not those of any import: also the row of BOS."""
    write_run(import_folder(mbart_folder(folder / "there", kind, STRONG)), folder / "run", lines("test.en")[:3])
    model, tokenizer = load_run(folder / "run")
    embedding, chance = model.get_layer("embedding"), np.random.default_rng(2)
    matrix = np.array(embedding.matrix)
    if kind == ONE_TARGET:  # training leaves nothing of a class that no text has, whose row is that of BOS there
        never = np.arange(len(matrix)) == tokenizer.pieces().index(PAIR[1])
        embedding.bias.assign(np.where(never, -30, embedding.bias))
    embedding.matrix.assign(matrix + 0.02 * chance.normal(size=matrix.shape))
    save_run(model, tokenizer, folder / "tuned", lines("test.en")[:3], RunFolder(folder / "run").inference())
    return folder / "tuned"


@pytest.mark.parametrize("kind", [FIFTY, ONE_TARGET, UNSCALED])
def test_transformers_computes_what_the_run_does(kind, tmp_path):
    run = tuned(tmp_path, kind)
    result = invoke(command.app, run, "--to", tmp_path / "out", "--format", "huggingface")
    assert result.exit_code == 0, result.output
    source, target = PAIR
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", src_lang=source, tgt_lang=target)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out").eval()
    options = kt.SearchOptions(beam_size=1, extra_length=EXTRA)
    translator = Translator.load(run, options)
    here = np.array(Pieces.of(translator.tokenizer).numbers)
    marks = translator._mark_reader.marks(source, target)
    opening = tokenizer.convert_tokens_to_ids(target)
    forced = {} if kind == ONE_TARGET else {"forced_bos_token_id": opening}
    own = np.arange(len(here)) != opening if kind == ONE_TARGET else slice(None)  # its row is that of BOS there
    compared = 0
    for line in lines("test.en")[:20]:
        expected = marks.around(translator.tokenizer.encode(line))
        batch = tokenizer([line], return_tensors="pt")
        assert here[batch["input_ids"][0].numpy()].tolist() == expected
        assert [here[number] for number in forced.values()] == [*marks.opening]
        with torch.no_grad():
            output = theirs.generate(
                **batch,
                num_beams=1,
                do_sample=False,
                max_length=None,
                max_new_tokens=len(expected) + EXTRA,
                **forced,
            )[0]
            logits = theirs(**batch, decoder_input_ids=output[None, :]).logits[0].numpy()
        ids = np.array([[BOS, *here[output[1:].numpy()]]])
        ours = translator._models[0](
            {
                "source_ids": np.array([expected]),
                "source_segments": np.ones((1, len(expected)), "int32"),
                "target_ids": ids,
                "target_segments": np.ones(ids.shape, "int32"),
            }
        )
        np.testing.assert_allclose(np.asarray(ours)[0][:, here[own]], logits[:, own], atol=CLOSE)
        (found,) = translator.translate([line], source_language=source, target_language=target)
        if output[-1] == 2 and not found.is_cut:
            assert tokenizer.decode(output, skip_special_tokens=True).strip() == found.text
            compared += 1
    assert compared > 5
