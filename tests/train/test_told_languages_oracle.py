"""Fine-tuning of M2M-100 and NLLB-200 takes the steps that PyTorch takes on transformers' model."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.model import Transformer
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.models.imported.vocabulary import renamed
from tests.support.m2m import KINDS, LEGACY, M2M, added_pieces, m2m_folder, text_pieces
from tests.train.test_told_languages import CONFIG, PAIRS, data_of, entries_in
from train.config.run import load_config
from train.data.batches import training_dataset
from train.step.training_model import compiled

pytestmark = pytest.mark.release
STEPS = 5
RATE = 3e-3
CLOSE = 1e-4
EOS_THERE, PAD_THERE, UNK_THERE = 2, 1, 3


def losses_of_pytorch(folder, kind, rows):
    """The loss before each update, of pairs (ids of the source, ids of the target) as transformers trains on them."""
    torch = pytest.importorskip("torch", reason="`make peers` installs PyTorch")
    transformers = pytest.importorskip("transformers", reason="`make peers` installs transformers")
    model = transformers.M2M100ForConditionalGeneration.from_pretrained(folder, dropout=0.0, attention_dropout=0.0)
    model.config.activation_dropout = model.config.encoder_layerdrop = model.config.decoder_layerdrop = 0.0
    model.eval()  # without any dropout
    optimizer = torch.optim.Adam(model.parameters(), RATE, betas=(0.9, 0.999), eps=1e-8)
    sources, labels = (
        torch.nn.utils.rnn.pad_sequence([torch.tensor(row[side]) for row in rows], True, filler)
        for side, filler in ((0, PAD_THERE), (1, -100))
    )
    losses = []
    for _ in range(STEPS):
        loss = model(input_ids=sources, attention_mask=(sources != PAD_THERE).long(), labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def rows_there(kind, pieces_of):
    """The pairs as ids of fairseq, with the pieces of their languages where the tokenizers of transformers put them."""
    pieces = [*text_pieces(), *added_pieces(kind)]
    nllb = {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn"}
    rows = []
    for codes, texts in PAIRS.items():
        source, target = (f"__{code}__" if kind == M2M else nllb[code] for code in codes)
        for one, other in texts:
            text, label = ([*map(pieces.index, pieces_of(each)), EOS_THERE] for each in (one, other))
            text = [*text, pieces.index(source)] if kind == LEGACY else [pieces.index(source), *text]
            rows.append((text, [pieces.index(target), *label]))
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_has_the_loss_of_the_same_step_of_pytorch(kind, tmp_path):
    folder = m2m_folder(tmp_path / "imported", kind)
    imported = import_folder(folder)
    write_run(imported, tmp_path / "run", [])
    path = tmp_path / "tuned.toml"
    path.write_text(CONFIG.format(folder=tmp_path, start=tmp_path / "run", entries=entries_in(tmp_path, PAIRS)))
    overrides = [f"training.learning_rate={RATE}", "training.tokens_per_batch=128", "training.row_length=128"]
    config, data = load_config(path, overrides), data_of(path, *overrides)
    start = imported.transformer()
    transformer = Transformer(config.transformer_config(data.tokenizer.vocab_size))
    transformer.set_weights(start.get_weights())
    model = compiled(transformer, config.training, tf.distribute.get_strategy())
    steps, batches = model.make_train_function(), iter(training_dataset(data.batches, 0, STEPS))
    found = [float(steps(batches)["loss"]) for _ in range(STEPS)]
    tokenizer = data.tokenizer
    named = {renamed(piece): piece for piece in text_pieces()}
    pieces = tokenizer.pieces()
    expected = losses_of_pytorch(
        folder, kind, rows_there(kind, lambda text: [named.get(pieces[n], "<unk>") for n in tokenizer.encode(text)])
    )
    np.testing.assert_allclose(found[0], expected[0], atol=CLOSE)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert found[-1] < 0.9 * found[0] and UNK_THERE == text_pieces().index("<unk>")
