"""Stage candidates: encoded pairs -> alignment candidates of source tokens, for vocabulary selection."""

from pathlib import Path

from convs2s.config.align import AlignParams
from convs2s.text.alignment.backends import align_ids
from convs2s.text.alignment.candidates import NO_CANDIDATES, write_candidates
from convs2s.text.alignment.link_counting import build_candidates
from convs2s.text.corpus.files import SIDES
from convs2s.text.vocabulary.encoded import EncodedCorpus


def run(params: AlignParams, encoded: Path, out: Path) -> None:
    """Align the two sides of a folder of encoded pairs; write out/candidates.npz.

    Without `align.candidates` the file is empty and does not depend on the corpus, so training without
    selection never reruns because of it.
    """
    out.mkdir(parents=True, exist_ok=True)
    if params.candidates is None:
        write_candidates(out / "candidates.npz", NO_CANDIDATES)
        return
    sides = [EncodedCorpus.open(encoded, side) for side in SIDES]
    links = align_ids(params.backend, sides[0], sides[1], params.iterations, out.parent)
    candidates = build_candidates(sides[0], sides[1], links, params.candidates)
    write_candidates(out / "candidates.npz", candidates)
