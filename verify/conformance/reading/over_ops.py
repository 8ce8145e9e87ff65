"""The signs of changes in RisingWave's vectors, and the words of the changelog here."""

from __future__ import annotations

from windowpane.errors import InconsistentChangeError
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE

WORDS = {"+": INSERT, "-": DELETE, "U-": UPDATE_PREIMAGE, "U+": UPDATE_POSTIMAGE}
SIGNS = {word: sign for sign, word in WORDS.items()}


def raise_it(error: InconsistentChangeError) -> None:
    """Raise a change that cannot be: the vectors have none."""
    raise error
