"""Which attention of a decoder aligns the words of a translation with those of its source."""

from typing import NamedTuple

from keras_transformer.ground.errors import ConfigError


class AlignedBy(NamedTuple):
    """The attention to the source of a decoder block, counted from 1, in the step of each token that `reads` tells.

    The step that writes a token is the one before that which reads it. With its token read, a model knows what it has
    written (Chen et al. 2020); but where which block looks differs from model to model, so it is chosen by measuring
    (`keras-transformer align`). block 0: the last but one, or the only one (Garg et al. 2019).
    """

    block: int = 0
    reads: bool = False

    def in_model(self, attentions: int) -> "AlignedBy":
        """Return it with the number of its block. attentions: blocks that attend to the source; 0 for none.

        Without attention to the source its block is 0. Raises ConfigError for a block that the model does not have.
        """
        if attentions and not 0 <= self.block <= attentions:
            raise ConfigError(f"Words are aligned by block {self.block}, and this model has blocks 1 to {attentions}.")
        if self.block and not attentions:
            raise ConfigError(f"Words are aligned by block {self.block}, and this model attends to no source.")
        return self._replace(block=self.block or max(min(1, attentions), attentions - 1))

    def check(self) -> None:
        """Raises ConfigError for a value that makes no sense."""
        if type(self.block) is not int or self.block < 0 or type(self.reads) is not bool:
            raise ConfigError(
                f"alignment is {self!r}; it must have a whole number as block, and true or false as reads."
            )


LAST_BUT_ONE = AlignedBy()
