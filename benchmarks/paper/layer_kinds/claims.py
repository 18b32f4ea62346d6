"""What Table 1 of the paper says of each kind of layer. Importing it imports no framework."""

from typing import NamedTuple


class Claim(NamedTuple):
    """A row of Table 1. The exponents are those of n and of d in its complexity per layer."""

    name: str
    complexity: str
    in_n: int
    in_d: int
    sequential: str
    path: str


ATTENTION = Claim("self-attention", "n² · d", 2, 1, "1", "1")
CLAIMS = {
    "self_attention": ATTENTION,
    "recurrent": Claim("recurrent (GRU, forward)", "n · d²", 1, 2, "n", "n"),
    "convolutional": Claim("convolutional (k = {kernel})", "k · n · d²", 1, 2, "1", "log_k(n)"),
    "restricted": Claim("self-attention, restricted (r = {neighbourhood})", "r · n · d", 1, 1, "1", "n / r"),
}
MEASURED = {  # what is timed: the paper's rows, and one more
    **CLAIMS,
    "masked": ATTENTION._replace(name="the same as a mask on full attention"),
}
STACKED = {  # whose path length is measured; section 4 says that log_k(n) is of dilated convolutions, n / k of others
    **CLAIMS,
    "convolutional": CLAIMS["convolutional"]._replace(path="n / k"),
    "dilated": CLAIMS["convolutional"]._replace(name="convolutional, dilated (k = {kernel})"),
}
