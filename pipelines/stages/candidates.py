"""Stage candidates: encoded pairs -> alignment candidates of source types, for vocabulary selection."""

from pathlib import Path
from tempfile import TemporaryDirectory

from convs2s.config.align import AlignParams
from convs2s.text.alignment.candidates import NO_CANDIDATES, build_candidates, write_candidates, write_ids
from convs2s.text.alignment.fast_align import align
from convs2s.text.alignment.fast_align_programs import align_with_programs
from convs2s.text.corpus.encoded import EncodedCorpus

BACKENDS = {"builtin": align, "fast_align": align_with_programs}


def run(params: AlignParams, encoded: Path, out: Path) -> None:
    """Align the two sides of a folder of encoded pairs; write out/candidates.npz.

    Without `align.candidates` the file holds none and is the same whatever the corpus, so that a training
    that does not use selection depends on nothing.
    """
    out.mkdir(parents=True, exist_ok=True)
    if params.candidates is None:
        write_candidates(out / "candidates.npz", NO_CANDIDATES)
        return
    sides = [EncodedCorpus.open(encoded, side) for side in ("source", "target")]
    with TemporaryDirectory(dir=out.parent, prefix=".candidates.") as work:
        texts = [Path(work) / name for name in ("source.txt", "target.txt")]
        for text, side in zip(texts, sides, strict=True):
            write_ids(text, side)
        links = BACKENDS[params.backend](texts[0], texts[1], params.iterations, Path(work))
        candidates = build_candidates(sides[0], sides[1], links, params.candidates)
    write_candidates(out / "candidates.npz", candidates)
