"""Stage candidates: encoded pairs -> alignment candidates of source tokens, for vocabulary selection."""

from pathlib import Path

from convs2s.base.files import SIDES, temporary_folder
from convs2s.config.text import AlignParams, CandidatesParams
from convs2s.ids.candidates import NO_CANDIDATES, write_candidates
from convs2s.ids.encoded import EncodedCorpus


def run(align: AlignParams, candidates: CandidatesParams, encoded: Path, out: Path) -> None:
    """Align the two sides of a folder of encoded pairs; write out/candidates.npz.

    Without `candidates.per_source` the file is empty and does not depend on the corpus, so training without
    selection never reruns because of it.
    """
    out.mkdir(parents=True, exist_ok=True)
    if candidates.per_source is None:
        write_candidates(out / "candidates.npz", NO_CANDIDATES)
        return
    # These import numba, which takes 0.3 s.
    from convs2s.text.alignment.backends import BACKENDS  # noqa: PLC0415
    from convs2s.text.alignment.link_counting import build_candidates  # noqa: PLC0415
    from convs2s.text.alignment.word_ids import copy_ids  # noqa: PLC0415

    source, target = (EncodedCorpus.open(encoded, side) for side in SIDES)
    with temporary_folder(out.parent) as folder:
        corpus = copy_ids(source, target, folder)
        links = BACKENDS[align.backend](corpus, align.iterations, folder)
        table = build_candidates(corpus, links, candidates.per_source)
        write_candidates(out / "candidates.npz", table)
