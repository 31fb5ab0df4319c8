"""The grammar as a source of pairs."""

from convs2s.english_german_grammar.corpus import generate
from convs2s.text.sources.generated_pairs import generated_part


def test_pairs_and_links_are_the_generators() -> None:
    """Links have the format of fast_align."""
    part = generated_part(pairs=3, seed=7, noise=0.0, split="train")
    expected = list(generate(3, 7, 0.0, "train"))
    pairs = list(part.pairs)
    assert [(pair.source, pair.target) for pair in pairs] == [(pair.source, pair.target) for pair in expected]
    links = [tuple(map(int, link.split("-"))) for link in pairs[0].alignment.split()]
    assert tuple(links) == expected[0].alignment
    assert part.aligned
    assert part.provenance == {"kind": "generated", "pairs": 3, "seed": 7, "noise": 0.0, "part": "train"}
