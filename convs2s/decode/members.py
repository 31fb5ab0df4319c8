"""Which of the trained models translate together (§5.2); reads none, so it imports no PyTorch."""

from collections.abc import Sequence
from pathlib import Path


def models_of(member: str, seeds: Sequence[int], trained: Path) -> list[Path]:
    """Return the folders of the models that translate together: trained/SEED/model.

    Models of other seeds in `trained` are ignored: with seeds 1 to 10 trained, `train.seeds` of 1 to 8 and
    then of all ten give both ensembles of Table 2 without further training (T24).

    Args:
        member: a seed, or `ensemble` for all of `seeds`.
    """
    members = seeds if member == "ensemble" else [int(member)]
    return [trained / str(seed) / "model" for seed in members]
