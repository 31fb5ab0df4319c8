"""The models that a server offers, by language pair."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.ids.vocabulary import read_counts
from convs2s.package.folder import read_settings
from convs2s.package.hub import locate
from convs2s.package.layer_attention import LayerAttention, LayerReader
from convs2s.package.translator import Translation, Translator, load
from convs2s.serve.requests import Refusal
from convs2s.text.vocabulary.rarity import Rarity


@dataclass(frozen=True, eq=False)
class Pair:
    """A language pair with its model, or its ensemble.

    Attributes:
        source: language code.
        target: language code.
        translator: returns all hypotheses of the beam.
        members: number of models.
        rarity: tells text that is unlike the training text.
    """

    source: str
    target: str
    translator: Translator
    members: int
    rarity: Rarity

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """Return each line's hypotheses, best first."""
        return self.translator.translate_n_best(lines)

    def attend(self, lines: list[str]) -> list[LayerAttention]:
        """Return each decoder layer's attention while each line is translated; for single models only."""
        reader = LayerReader.of(self.translator)
        return [reader.read(self.translator.source.tokenize(line)) for line in lines]


class Pairs:
    """The language pairs of a server."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = {(pair.source, pair.target): pair for pair in pairs}

    def __str__(self) -> str:
        return ", ".join(f"{source}-{target}" for source, target in self._pairs)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs.values())

    def targets(self) -> dict[str, list[str]]:
        """Return the languages, each with the languages it can be translated to."""
        codes = sorted({code for pair in self._pairs for code in pair})
        return {code: sorted(target for source, target in self._pairs if source == code) for code in codes}

    def find(self, source: str, target: str) -> Pair:
        """Return a pair; source `auto` is the only language that can be translated to the target."""
        if source == "auto":
            sources = [first for first, second in self._pairs if second == target]
            if len(sources) > 1:
                raise Refusal(
                    400,
                    f"source auto: this server does not detect languages, and {', '.join(sources)} can be "
                    f"translated to {target}. Name one of them.",
                )
            source = sources[0] if sources else source
        if (source, target) not in self._pairs:
            raise Refusal(400, f"{source}-{target} is not available; this server translates {self}.")
        return self._pairs[source, target]


def load_pairs(
    folders: Sequence[Path], device: str | None, beam_size: int | None, replace: bool | None
) -> Pairs:
    """Load model folders, an ensemble if several have the same language pair; errors as `load`."""
    by_pair: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder in map(locate, folders):
        by_pair[read_settings(folder).languages].append(folder)
    pairs = []
    for (source, target), paths in by_pair.items():
        size = beam_size or read_settings(paths[0]).translate.beam_size
        translator = load(paths, device, replace=replace, beam_size=size, n_best=size)
        rarity = Rarity(translator.words.source, read_counts(paths[0] / "source.tsv", "vocabulary"))
        pairs.append(Pair(source, target, translator, len(paths), rarity))
    return Pairs(pairs)
