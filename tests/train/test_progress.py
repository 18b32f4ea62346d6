"""What is still to come."""

import pytest

from train.loop.progress import Progress, times_left


def test_a_run_that_has_not_begun_has_done_and_found_nothing():
    assert not any(vars(Progress()).values())


@pytest.mark.parametrize("every", [1, 3, 7, 100])
def test_what_comes_every_so_many_steps_and_after_the_last_is_still_to_come_as_often_as_it_comes(every):
    due = [step for step in range(1, 101) if step % every == 0 or step == 100]
    assert [times_left(step, 100, every) for step in range(1, 101)] == [
        sum(later >= step for later in due) for step in range(1, 101)
    ]
