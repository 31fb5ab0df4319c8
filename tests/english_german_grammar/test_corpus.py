import functools
import hashlib
import itertools
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from sacremoses import MosesTokenizer

from convs2s.english_german_grammar import corpus
from convs2s.english_german_grammar.corpus import CorpusPart, GeneratedPair, generate, part_of
from convs2s.english_german_grammar.phrases import phrase
from convs2s.text.sources.generated_pairs import write_corpus

ENGLISH, GERMAN = MosesTokenizer("en"), MosesTokenizer("de")


@functools.cache
def tokens(pair: GeneratedPair) -> tuple[list[str], list[str]]:
    return ENGLISH.tokenize(pair.source, escape=False), GERMAN.tokenize(pair.target, escape=False)


@pytest.fixture(scope="module")
def clean() -> list[GeneratedPair]:
    return list(generate(6000, seed=1, noise=0.0, part="train"))


def test_same_seed_same_bytes() -> None:
    """Python's random bits are stable, so this hash holds on every machine and version.

    A change of the grammar changes it: numbers for the new corpus compare with no earlier ones.
    """
    digest = hashlib.sha256()
    for pair in generate(1000, seed=1, noise=0.05, part="train"):
        digest.update(repr(pair).encode())
    assert digest.hexdigest() == "c2c5683d11afe3bc241f2d96682a13c9467ca47bccdd4596afbbbeea89a4f612"


def test_smaller_corpus_is_the_beginning_of_a_larger() -> None:
    """This must hold across blocks of pairs, and with noise."""
    larger = list(generate(corpus.BLOCK + 600, seed=3, noise=0.1, part="train"))
    assert list(generate(corpus.BLOCK + 50, seed=3, noise=0.1, part="train")) == larger[: corpus.BLOCK + 50]


def test_noise_leaves_the_clean_pairs_unchanged() -> None:
    """Pairs that stay clean are the same as without noise, in the same places."""
    without = generate(1500, seed=4, noise=0.0, part="train")
    same = [a == b for a, b in zip(without, generate(1500, seed=4, noise=0.2, part="train"), strict=True)]
    assert 1500 * 0.75 < sum(same) < 1500 * 0.85


def test_seeds_differ() -> None:
    """A different seed gives a different corpus."""
    first, second = ({pair.source for pair in generate(500, seed, 0.0, "train")} for seed in (1, 2))
    assert len(first & second) < 20


def test_parts_share_no_sentence(clean: list[GeneratedPair]) -> None:
    """A hash of the source decides on the part, for any seed."""
    drawn: dict[CorpusPart, set[str]] = {"train": {pair.source for pair in clean}}
    held_out: tuple[CorpusPart, ...] = ("valid", "test")
    for part in held_out:
        drawn[part] = {pair.source for pair in generate(100, seed=2, noise=0.0, part=part)}
    for part, sources in drawn.items():
        assert {part_of(source) for source in sources} == {part}


def test_indices_fit_the_moses_tokens(clean: list[GeneratedPair]) -> None:
    """The alignment must count tokens as the pipeline does."""
    for pair in clean:
        english, german = tokens(pair)
        assert pair.alignment == tuple(sorted(set(pair.alignment)))
        for a, b in pair.alignment:
            assert a < len(english), pair
            assert b < len(german), pair
        assert (len(english) - 1, len(german) - 1) in pair.alignment


def test_copied_tokens_are_linked_to_each_other(clean: list[GeneratedPair]) -> None:
    """An index that is off by one would link names and marks to other words.

    A capitalized word that occurs once on each side translates itself, except for month names.
    """
    checked = 0
    for pair in clean[:2000]:
        english, german = tokens(pair)
        once = {w for w in {*english} & {*german} if english.count(w) == german.count(w) == 1}
        for word in once:
            if word[0].isupper() and english.index(word) > 0 and word not in {"August", "September"}:
                assert (english.index(word), german.index(word)) in pair.alignment, (pair, word)
                checked += 1
    assert checked > 500


def test_every_english_token_is_linked(clean: list[GeneratedPair]) -> None:
    """Only commas and a few function words in German have no English counterpart."""
    silent: Counter[str] = Counter()
    for pair in clean:
        english, german = tokens(pair)
        assert {a for a, _ in pair.alignment} == set(range(len(english))), pair
        silent.update({german[b] for b in set(range(len(german))) - {b for _, b in pair.alignment}})
    assert set(silent) <= {",", "Sie", "dass", "um", "an"}


def test_clean_pairs_pass_the_filter(clean: list[GeneratedPair]) -> None:
    """Otherwise the filter's table would count good pairs as bad."""
    for pair in clean:
        english, german = map(len, tokens(pair))
        assert 2 < english < 60
        assert english <= 1.5 * german
        assert german <= 1.5 * english


def test_a_german_number_never_ends_a_sentence() -> None:
    """The tokenizer takes its period for that of an ordinal: "the 9th" is written "9."."""
    assert GERMAN.tokenize("Es war 9.", escape=False)[-1] == "9."
    assert not corpus.is_sound(phrase("It was 9 \x01.", "Es war 9 \x01."))
    assert corpus.is_sound(phrase("That was then \x01.", "Das war damals \x01."))


def test_sentences_vary_in_length(clean: list[GeneratedPair]) -> None:
    """The mean is about nine words; some sentences are short, some long."""
    lengths = [len(pair.source.split()) for pair in clean]
    assert 8 < sum(lengths) / len(lengths) < 11
    assert min(lengths) <= 3
    assert max(lengths) >= 22


def test_vocabulary_is_open(clean: list[GeneratedPair]) -> None:
    """A third of the words occur once, and a test set has words that are not in the training set."""
    sides = [Counter(word for pair in clean for word in tokens(pair)[side]) for side in (0, 1)]
    for counts in sides:
        assert sum(count == 1 for count in counts.values()) > 0.3 * len(counts)
    assert len(sides[1]) > 4000
    unseen = [
        word
        for pair in generate(60, seed=1, noise=0.0, part="test")
        for word in tokens(pair)[1]
        if word not in sides[1]
    ]
    assert unseen


def test_text_is_clean(clean: list[GeneratedPair]) -> None:
    """There are no internal markers or double spaces; a capital comes first, a mark last."""
    for pair in clean:
        for text in pair[:2]:
            assert isinstance(text, str)
            assert not set(text) & set("\x01\x02\t\n_|")
            assert "  " not in text
            assert text == text.strip()
            assert text.lstrip('"')[0] == text.lstrip('"')[0].upper()
            assert text[-1] in '.?!"'


def fault(pair: GeneratedPair) -> str:
    """Return the reason why the paper's filter drops a pair, or an empty string."""
    if not pair.source or not pair.target:
        return "empty"
    if max(len(text.split()) for text in pair[:2]) > 175:  # Moses splits words but never joins any
        return "long"
    english, german = map(len, tokens(pair))
    if max(english, german) > 175:
        return "long"
    if english > 1.5 * german:
        return "ratio of source"
    return "ratio of target" if german > 1.5 * english else ""


def test_noise_is_of_all_kinds_and_all_caught() -> None:
    """A third each: over 175 words, a ratio over 1.5 in either direction, an empty side."""
    pairs = list(generate(3000, seed=5, noise=0.1, part="train"))
    faults = Counter(fault(pair) for pair in pairs)
    bad = 3000 - faults[""]
    assert 240 < bad < 360
    assert bad == sum(
        a != b for a, b in zip(pairs, generate(3000, seed=5, noise=0.0, part="train"), strict=True)
    )
    assert 0.2 * bad < faults["empty"] < 0.47 * bad
    assert 0.2 * bad < faults["long"] < 0.47 * bad
    assert faults["ratio of source"] > 0.08 * bad
    assert faults["ratio of target"] > 0.08 * bad


def test_long_pairs_keep_a_true_alignment() -> None:
    """When sentences are joined, so are their links."""
    pairs = [pair for pair in generate(600, seed=6, noise=0.2, part="train") if fault(pair) == "long"]
    assert len(pairs) > 20
    for pair in pairs:
        english, german = tokens(pair)
        assert (len(english) - 1, len(german) - 1) == pair.alignment[-1]
        periods = [(a, b) for a, b in pair.alignment if english[a] == "." and german[b] == "."]
        assert len(periods) > 10


def test_noise_is_for_training_only() -> None:
    """A test set must not be altered."""
    assert list(generate(40, 1, 0.9, "test")) == list(generate(40, 1, 0.0, "test"))


def test_pairs_are_streamed() -> None:
    """Memory must not grow with the number of pairs: 40 million need no more than a few."""
    stream = generate(40_000_000, seed=1, noise=0.0, part="train")
    next(itertools.islice(stream, 1000, 1001))
    tracemalloc.start()
    next(itertools.islice(stream, 2000, 2001))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000


def test_files_have_one_line_per_pair(tmp_path: Path) -> None:
    """The three files are parallel; an earlier corpus is replaced."""
    folder = tmp_path / "corpus"
    write_corpus(folder, 5, 2, 0.0, "train")
    write_corpus(folder, 300, 1, 0.1, "train")
    assert sorted(path.name for path in folder.iterdir()) == ["alignment.txt", "source.txt", "target.txt"]
    lines = [
        (folder / name).read_text("utf-8").split("\n")
        for name in ("source.txt", "target.txt", "alignment.txt")
    ]
    assert [len(side) for side in lines] == [301, 301, 301]
    for source, target, alignment, pair in zip(*lines, generate(300, 1, 0.1, "train"), strict=False):
        assert (source, target) == pair[:2]
        assert alignment == " ".join(f"{a}-{b}" for a, b in pair.alignment)


def test_a_failed_corpus_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partly written corpus must not look complete."""

    def broken(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(corpus, "draw_pair", broken)
    with pytest.raises(KeyboardInterrupt):
        write_corpus(tmp_path / "corpus", 10, 1, 0.0, "train")
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_are_named() -> None:
    """Each message says what was found, what was wanted, and what to do."""
    with pytest.raises(ValueError, match=r"pairs: found -1, wanted .* from 0 up. Check params.yaml"):
        generate(-1, 1, 0.0, "train")
    with pytest.raises(ValueError, match=r"noise: found 1.5, wanted the share .* from 0 to 1. Check params"):
        generate(1, 1, 1.5, "train")
    with pytest.raises(ValueError, match="part: found 'dev', wanted train, valid or test"):
        generate(1, 1, 0.0, "dev")  # type: ignore[arg-type]
