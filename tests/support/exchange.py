"""Runs of imported models that are exported for transformers again, and what it computes from them."""

import numpy as np

from export.__main__ import app
from export.huggingface.m2m import Pieces
from keras_transformer.ground.tokens import BOS
from keras_transformer.models.imported.arrays import read_safetensors
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run, save_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator

from .commands import invoke
from .imported import logits
from .marian import lines
from .peers import Peer

torch, transformers = Peer("torch"), Peer("transformers")


def exported(run, folder, *options):
    """Typer's result of exporting a run for transformers."""
    return invoke(app, run, "--to", folder, "--format", "huggingface", *options)


def assert_the_same_model(folder, other):
    """Two folders are imported to the same, and have arrays by the same names. Returns both files' arrays."""
    first, second = import_folder(folder), import_folder(other)
    assert first.config == second.config and first.languages == second.languages
    assert first.tokenizer.model_bytes == second.tokenizer.model_bytes
    assert first.values.keys() == second.values.keys()
    for path, value in first.values.items():
        np.testing.assert_array_equal(value, second.values[path])
    arrays, others = (read_safetensors(each / "model.safetensors") for each in (folder, other))
    assert arrays.keys() == others.keys()
    return arrays, others


def tuned(there, run, never=None):
    """A run from a folder, whose weights are not those of any import: also the row of BOS, which no fairseq model has.

    never: a piece that no output has, or None.
    """
    sample = lines("test.en")[:3]
    write_run(import_folder(there), run.with_name("imported"), sample)
    model, tokenizer = load_run(run.with_name("imported"))
    embedding, chance = model.get_layer("embedding"), np.random.default_rng(2)
    matrix = np.array(embedding.matrix)
    if never:
        embedding.bias.assign(np.where(np.arange(len(matrix)) == tokenizer.pieces().index(never), -30, embedding.bias))
    embedding.matrix.assign(matrix + 0.02 * chance.normal(size=matrix.shape))
    save_run(model, tokenizer, run, sample, RunFolder(run.with_name("imported")).inference())
    return run


def assert_transformers_computes_as(run, folder, pair, tolerance, is_told=True):
    """transformers divides text, computes and translates as the run that was exported to `folder`.

    pair: the languages. is_told: generate is told the target's piece; else its row is that of BOS there.
    """
    source, target = pair
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, src_lang=source, tgt_lang=target)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    translator = Translator.load(run, SearchOptions(beam_size=1, extra_length=20))
    here, marks = np.array(Pieces.of(translator.tokenizer).numbers), translator._mark_reader.marks(source, target)
    opening = tokenizer.convert_tokens_to_ids(translator.languages.target[target] or target)
    forced = {"forced_bos_token_id": opening} if is_told else {}
    assert [here[number] for number in forced.values()] == [*marks.opening]
    own = slice(None) if is_told else np.arange(len(here)) != opening
    compared = 0
    for line in lines("test.en")[:20]:
        ids, batch = marks.around(translator.tokenizer.encode(line)), tokenizer([line], return_tensors="pt")
        assert here[batch["input_ids"][0].numpy()].tolist() == ids
        limits = {"max_length": None, "max_new_tokens": len(ids) + 20}
        with torch.no_grad():
            output = theirs.generate(**batch, num_beams=1, do_sample=False, **limits, **forced)[0]
            expected = theirs(**batch, decoder_input_ids=output[None, :]).logits[0].numpy()
        ours = logits(translator._models[0], ids, [BOS, *here[output[1:].numpy()]])
        np.testing.assert_allclose(ours[:, here[own]], expected[:, own], atol=tolerance)
        (found,) = translator.translate([line], source_language=source, target_language=target)
        if output[-1] == 2 and not found.is_cut:
            assert tokenizer.decode(output, skip_special_tokens=True).strip() == found.text
            compared += 1
    assert compared > 5
