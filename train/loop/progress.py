"""How far a run is, over all its processes."""

import dataclasses

from train.data.batches import batch_number


@dataclasses.dataclass
class Progress:
    """How far the run is, over all its processes; a checkpoint keeps it."""

    step: int = 0  # updates done
    seconds: float = 0.0  # in `fit`: compilation, validation and checkpoints included
    target_tokens: float = 0.0  # trained on
    has_learned: bool = False  # some step had a loss below guessing's
    skipped: list[int] = dataclasses.field(default_factory=list)  # batches left out of the stream, counted from 0

    @property
    def batch(self):
        """The number of the batch that the next update trains on, counted from 0."""
        return batch_number(self.step, self.skipped)


def duration(seconds):
    """3725 -> "1 h 02 min"; 65 -> "1 min 05 s"; 9 -> "9 s"."""
    seconds = int(round(seconds))
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
