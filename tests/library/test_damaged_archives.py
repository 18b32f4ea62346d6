"""Archives with other bytes than were written: whatever is wrong with one, its reader says so, without a traceback."""

import errno
import gzip
import io
import pathlib
import re
import zipfile

import numpy as np
import pytest

from keras_transformer.doctor.finding import MISSING
from keras_transformer.doctor.runs import newest_checkpoint
from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.ground.files import DAMAGED_ARCHIVE, unpacked_lines
from keras_transformer.pieces.pair_tokenizer import MEMBERS, _parts
from keras_transformer.pieces.tokenizer import TokenizerError
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.shortlist.shortlist import Shortlist
from tests.support.damage import every_flip
from train.data.corpus import CorpusError
from train.data.files import lines_of
from train.data.sources.treebank import TreebankFile, members_of
from train.loop.checkpoints import CheckpointError, DamagedCheckpoint, read_checkpoint
from train.report.comparison import minutes_of


def packed(name, content, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def saved(save, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def all_of_zip(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [archive.read(name) for name in archive.namelist()]


def all_of_npz(content):
    with np.load(io.BytesIO(content)) as archive:
        return [archive[name] for name in archive.files]


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (all_of_zip, packed("a.mrg", "( (S (NN dogs)) )\n" * 3)),
        (all_of_zip, packed("a", "text", zipfile.ZIP_STORED)),
        (all_of_npz, saved(np.savez, progress=np.array('{"seconds": 1.0}'))),
        (all_of_npz, saved(np.savez_compressed, offsets=np.zeros(9, np.int32))),
    ],
)
def test_whatever_bit_of_an_archive_is_another_it_is_read_or_its_error_is_known(read, content):
    refused = 0
    for damaged in every_flip(content):
        try:
            read(damaged)
        except (OSError, *DAMAGED_ARCHIVE):
            refused += 1
    assert refused > len(content) / 2


def trees_in(path):
    return TreebankFile(path, "a.mrg").trees()


def named_by_doctor(path):
    """A reader of the doctor's, which raises what it finds."""
    [finding] = newest_checkpoint(RunFolder(path.parent.parent))
    assert finding.state == MISSING and "is damaged: " in finding.text
    raise DamagedCheckpoint(finding.text)


def minutes_in(path):
    """A reader of the comparison's: a checkpoint that it cannot read is none."""
    if minutes_of(RunFolder(path.parent.parent)) is None:
        raise DamagedCheckpoint


READERS = {
    members_of: CorpusError,
    trees_in: CorpusError,
    Shortlist.load: ConfigError,
    read_checkpoint: DamagedCheckpoint,
    minutes_in: DamagedCheckpoint,
    named_by_doctor: DamagedCheckpoint,
    lambda path: _parts(path.read_bytes(), path): TokenizerError,
}


@pytest.mark.parametrize("kind", DAMAGED_ARCHIVE)
@pytest.mark.parametrize("read", READERS)
def test_every_reader_of_an_archive_names_the_file_whatever_is_wrong(read, kind, tmp_path, monkeypatch):
    path = RunFolder(tmp_path).checkpoints / "step-00000001.npz"
    path.parent.mkdir()
    path.write_bytes(packed(MEMBERS[0], "text"))

    def refuse(*_, **__):
        raise kind

    monkeypatch.setattr(zipfile, "ZipFile", refuse)
    with pytest.raises(READERS[read]):
        read(pathlib.Path(path))


@pytest.mark.parametrize("read", [*READERS][:-1])
def test_every_reader_names_what_the_file_system_says(read, tmp_path, monkeypatch):
    path = RunFolder(tmp_path).checkpoints / "step-00000001.npz"
    path.parent.mkdir()
    path.write_bytes(packed(MEMBERS[0], "text"))

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(zipfile, "ZipFile", refuse)
    with pytest.raises(CheckpointError if read is read_checkpoint else READERS[read]) as error:
        read(path)
    assert read is minutes_in or "Permission denied" in str(error.value)
    assert not isinstance(error.value, DamagedCheckpoint) or read in (minutes_in, named_by_doctor)


# Text that is compressed with gzip

LINES = [f"Satz {number} über Köter" for number in range(4_000)]
PACKED = gzip.compress("".join(f"{line}\n" for line in LINES).encode("utf-8"), mtime=0)
COMPLAINT = (
    r"a\.gz cannot be decompressed after line [\d,]+: [^\n]+\. It is damaged, or not a gzip file: copy it again\."
)


def flips(count=60):
    """The same file with one bit changed anywhere behind the magic number."""
    for place in np.random.default_rng(0).integers(2, len(PACKED), count):
        yield PACKED[:place] + bytes([PACKED[place] ^ 1 << place % 8]) + PACKED[place + 1 :]


@pytest.mark.parametrize("read", [unpacked_lines, lines_of], ids=["library", "training"])
def test_a_damaged_gzip_file_is_damaged_and_no_text_in_another_encoding(tmp_path, read):
    path = tmp_path / "a.gz"
    cut = [PACKED[:length] for length in range(20, len(PACKED), 997)]
    for content in (*flips(), *cut, PACKED + b"and more"):
        path.write_bytes(content)
        try:
            assert list(read(path)) == LINES  # a flag or the time in the header may change nothing
        except UserError as error:
            assert re.search(COMPLAINT, str(error)) and "[Errno" not in str(error), error


@pytest.mark.parametrize("read", [unpacked_lines, lines_of], ids=["library", "training"])
def test_text_in_another_encoding_that_is_whole_is_no_damage(tmp_path, read):
    (tmp_path / "a.gz").write_bytes(gzip.compress("größer\n".encode("latin-1")))
    with pytest.raises(UserError, match="line 1 is not UTF-8"):
        list(read(tmp_path / "a.gz"))
