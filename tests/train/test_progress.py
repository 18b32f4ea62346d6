"""How far a run is, by what its checkpoints hold, and what is still to come."""

import numpy as np
import pytest

from train.loop.checkpoints import DamagedCheckpoint, is_interim, last_progress, progress_in, read_checkpoint
from train.loop.progress import times_left


@pytest.mark.parametrize("every", [1, 3, 7, 100])
def test_what_comes_every_so_many_steps_and_after_the_last_is_still_to_come_as_often_as_it_comes(every):
    due = [step for step in range(1, 101) if step % every == 0 or step == 100]
    assert [times_left(step, 100, every) for step in range(1, 101)] == [
        sum(later >= step for later in due) for step in range(1, 101)
    ]


@pytest.mark.parametrize(
    "progress", [None, "{torn", '{"step": 1}', '{"seconds": 1, "strange": 2}', '{"seconds": null}', "[]", "3"]
)
def test_of_a_checkpoint_without_progress_nothing_is_known_and_the_one_before_it_counts(tmp_path, progress):
    before, damaged = (tmp_path / f"step-0000000{step}.npz" for step in (1, 2))
    np.savez(before, progress=np.array('{"step": 1, "seconds": 2.0, "is_interim": true}'))
    np.savez(damaged, **{"progress": np.array(progress)} if progress else {"weights": np.zeros(2)})
    assert progress_in(damaged) is None and not is_interim(damaged)
    assert last_progress(tmp_path) == progress_in(before) and progress_in(before).step == 1 and is_interim(before)


def test_a_run_without_an_intact_checkpoint_has_no_progress(tmp_path):
    assert last_progress(tmp_path) is last_progress(tmp_path / "nowhere") is None
    (tmp_path / "step-00000009.npz").write_bytes(b"PK and nothing more")
    assert progress_in(tmp_path / "step-00000009.npz") is last_progress(tmp_path) is None


def test_a_checkpoint_that_is_marked_as_encrypted_is_damaged(tmp_path):
    path = tmp_path / "step-00000001.npz"
    np.savez(path, progress=np.array('{"step": 1, "seconds": 2.0}'))
    content = bytearray(path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags] |= 1
    path.write_bytes(content)
    with pytest.raises(DamagedCheckpoint, match=f"{path} is damaged: .*encrypted"):
        read_checkpoint(path)
