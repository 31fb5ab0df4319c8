"""Write translations: a folder with hypotheses.jsonl and attention.npz; does not import PyTorch."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from convs2s.decode.attention import Attention, write_attention
from convs2s.decode.hypotheses import TextHypothesis, write_hypotheses
from convs2s.text.corpus.files import atomic_path


def write_translations(
    sentences: Sequence[list[str]], found: Iterable[list[TextHypothesis]], out: Path
) -> None:
    """Write the translations of sentences to the folder `out`, all or nothing.

    Args:
        sentences: words of each.
        found: hypotheses of each, best first; may be a generator that searches as it is read.
        out: folder to write.
    """
    done: list[tuple[list[str], list[TextHypothesis]]] = []
    attention: list[Attention] = []
    for words, (best, *others) in zip(sentences, found, strict=True):
        done.append((words, [replace(best, attention=None), *others]))
        if best.attention is not None:
            attention.append(best.attention.halved())
    with atomic_path(out) as temporary:
        temporary.mkdir()
        write_hypotheses(temporary / "hypotheses.jsonl", done)
        write_attention(temporary / "attention.npz", attention)
