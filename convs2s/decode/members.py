"""Which of the trained models translate together (§5.2); loads none, so it does not import PyTorch."""

from collections.abc import Sequence
from pathlib import Path


def models_of(member: str, seeds: Sequence[int], trained: Path) -> list[Path]:
    """Return the folders of the models that translate together: trained/SEED/model.

    Models of other seeds in `trained` are ignored: once seeds 1 to 10 are trained, setting `train.seeds` to
    1 to 8 and then to all ten gives both ensembles of Table 2 without further training (T24).

    Args:
        member: a seed, or `ensemble` for all of `seeds`.
    """
    members = seeds if member == "ensemble" else [int(member)]
    return [trained / str(seed) / "model" for seed in members]
