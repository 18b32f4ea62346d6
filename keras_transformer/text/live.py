"""A translation that is shown while a greedy search writes it, by searches that may write twice as much each time."""

from keras_transformer.ground.errors import InputError

FEWEST = 4  # tokens of the first search, end of sentence included
HALF = "\ufffd"  # stands for each byte of a character that has not all of its bytes


class LiveText:
    """What is known of a translation, and which search tells more of it.

    A search that is stopped after some tokens has the first ones of a search that is not, so that it can be asked for
    4, 8, 16 and so on, of any engine that takes `max_length`: no engine needs to call anybody back. All searches
    together take two to three times as many steps as the last one.

    limit: tokens of the next search, at most; 0: as many as the engine allows. prefix: with what its translation must
    begin, "" for nothing. has_ended: whether `piece` has returned all.
    """

    def __init__(self, fewest: int, most: int):
        """fewest, most: limits that the engine takes; 0 and 0 if it takes none, so that the text comes as a whole."""
        self.limit, self._most = min(max(fewest, FEWEST), most), most
        self.prefix, self.has_ended = "", False
        self._known = self._text = ""

    def piece(self, text: str, is_cut: bool | None) -> str:
        """Return what comes next, "" if nothing is certain, after the search for `limit` and `prefix` has found a text.

        is_cut: whether the limit ended it. Raises InputError if the text does not begin with the pieces so far.
        """
        self.has_ended = not self.limit or is_cut is False
        certain = text if self.has_ended else text.rstrip().rstrip(HALF).rstrip()
        if certain.startswith(self._known):
            piece, self._known = certain[len(self._known) :], certain
            grows = is_cut and text != self._text and 2 * self.limit < self._most
            self.limit, self._text = 2 * self.limit if grows else 0, text
            return piece
        if self.prefix:
            raise InputError("What is written so far does not begin a translation: ask for it as a whole.")
        # Two tokens were as probable as each other, and rounding, as in another batch, chose the other one this time.
        self.has_ended, self.limit, self.prefix = False, 0, self._known
        return ""
