"""Stage evaluate: translations of the test set -> scores, tables and pictures."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from convs2s.config.evaluate import EvaluateParams
from convs2s.config.load import load_params
from convs2s.config.tokenize import TokenizeParams
from convs2s.decode.attention import Attention, read_attention
from convs2s.score.corpus_scores import score_system, signatures
from convs2s.score.identity import identify
from convs2s.score.pictures import draw_attention, draw_scores, easy_to_read
from convs2s.score.rouge import NAMES, SETTINGS, Rouge
from convs2s.score.tables import (
    Result,
    example_table,
    length_table,
    nested_metrics,
    score_table,
    spread,
    tab_separated,
)
from convs2s.text.corpus.files import atomic_path, read_lines, unequal_lines, write_lines
from convs2s.text.corpus.pair_folder import further_references
from convs2s.text.words.tokenization import Tokenizer


class TestSet(NamedTuple):
    """The test set: a line per sentence."""

    sources: list[str]
    references: list[str]
    """As detokenized translations are compared with them."""
    source_lengths: list[int]
    """In words."""
    tokenized_references: list[str]
    all_references: list[tuple[str, ...]]
    """The reference of each sentence, and the further ones; ROUGE takes them all."""


class Translation(NamedTuple):
    """A translation of the test set: a line per sentence."""

    member: str
    text: str
    lines: list[str]
    tokenized: list[str]


def run(
    params: EvaluateParams,
    tokenize: TokenizeParams,
    languages: tuple[str, str],
    seeds: Sequence[int],
    replacement: bool,
    replaced: Path,
    translations: Path,
    test: Path,
    out: Path,
) -> None:
    """Score the texts in `replaced`/MEMBER, for each seed and, if there are several, the ensemble.

    Writes to `out` metrics.json, signatures.json, scores.csv, by_length.csv, examples.tsv, pictures/, and
    test_set.json, the test set's name, lines and hash. Several references count for ROUGE; BLEU and chrF take
    the first. All but tokenized BLEU are of detokenized text.
    With `replacement`, stage replace wrote replaced.txt beside plain.txt: the main scores are then those with
    unknown words replaced, and those without stand beside. `languages` are those of source and target. The
    attention that is drawn is that of `translations`/SEED for the first seed.

    Raises:
        FileNotFoundError: if a translation is missing.
        ValueError: if a translation or the attention does not have as many sentences as the test set, or
            there is nothing to score.
    """
    test_set = read_test(test, tokenize, languages)
    members = [str(seed) for seed in seeds] + (["ensemble"] if len(seeds) > 1 else [])
    texts = ["plain", "replaced"] if replacement else ["plain"]
    found = [read_translation(replaced, m, t, test / "target.txt", test_set) for t in texts for m in members]
    rouge = SETTINGS[params.rouge] if params.rouge else None
    scores = score_table([score_translation(translation, test_set, rouge) for translation in found])
    final = found[-len(members) :]
    single = [translation.lines for translation in final[: len(seeds)]]
    by_length = length_table(test_set.source_lengths, single, test_set.references)
    named = {name: rouge.signature(test_set.all_references) for name in NAMES} if rouge else {}
    write_scores(scores, texts, signatures() | named, out)
    identity = identify(test)
    write_json(asdict(identity), out / "test_set.json")
    print(f"scored on {identity}")
    write_csv(by_length, out / "by_length.csv")
    write_examples(test_set, final[-1], params.examples, out / "examples.tsv")
    with atomic_path(out / "pictures") as folder:
        folder.mkdir()
        draw_scores(scores, by_length, folder / "scores.png")
        attention = read_sentences(translations / members[0] / "attention.npz", len(test_set.sources))
        draw_attentions(attention, params.heat_maps, folder)


def read_test(test: Path, tokenize: TokenizeParams, languages: tuple[str, str]) -> TestSet:
    """Read the test set and tokenize it as the training text was."""
    source, target = test / "source.txt", test / "target.txt"
    sources, references = list(read_lines(source)), list(read_lines(target))
    if len(sources) != len(references):
        raise unequal_lines(source, len(sources), target, len(references))
    split_source, split_target = (Tokenizer(language, tokenize) for language in languages)
    lengths = [len(split_source.words(line)) for line in sources]
    tokenized = [" ".join(split_target.words(line)) for line in references]
    compared = [split_target.reference(line) for line in references]
    further = [
        [split_target.reference(line) for line in read_lines(path)] for path in further_references(test)
    ]
    return TestSet(sources, compared, lengths, tokenized, list(zip(compared, *further, strict=True)))


def read_translation(
    replaced: Path, member: str, text: str, reference: Path, test_set: TestSet
) -> Translation:
    """Read a translation and check that it has a line per sentence of the test set."""
    paths = replaced / member / f"{text}.txt", replaced / member / f"{text}.tok.txt"
    lines, tokenized = (list(read_lines(path)) for path in paths)
    for path, found in zip(paths, (lines, tokenized), strict=True):
        if len(found) != len(test_set.references):
            raise unequal_lines(path, len(found), reference, len(test_set.references))
    return Translation(member, text, lines, tokenized)


def score_translation(translation: Translation, test_set: TestSet, rouge: Rouge | None) -> Result:
    """Return all scores of a translation."""
    scores = score_system(
        translation.lines, translation.tokenized, test_set.references, test_set.tokenized_references
    )
    found = rouge.scores(translation.lines, test_set.all_references) if rouge else {}
    values = {name: score.value for name, score in found.items()}
    return Result(translation.member, translation.text, scores, values)


def write_scores(
    scores: pd.DataFrame, texts: Sequence[str], signatures: Mapping[str, str], out: Path
) -> None:
    """Write the scores as a table and as metrics, the last text being the main one, and the signatures."""
    metrics = nested_metrics(scores, texts[-1])
    if len(texts) > 1:
        metrics["without_replacement"] = nested_metrics(scores, "plain")
    write_csv(scores, out / "scores.csv")
    write_json(metrics, out / "metrics.json")
    write_json(signatures, out / "signatures.json")


def write_examples(test_set: TestSet, translation: Translation, count: int, path: Path) -> None:
    """Write `count` sentences, spread over the test set, with their translations and scores."""
    chosen = spread([i for i, words in enumerate(test_set.source_lengths) if words], count)
    examples = example_table(chosen, test_set.sources, translation.lines, test_set.references)
    examples.insert(1, "model", translation.member)
    write_lines(path, tab_separated(examples))


def read_sentences(path: Path, sentences: int) -> list[Attention]:
    """Read attention and check that it is there for every sentence of the test set."""
    attention = read_attention(path)
    if len(attention) != sentences:
        raise ValueError(
            f"{path} has the attention of {len(attention):,} sentences; wanted {sentences:,}, one per line "
            "of the test set. Run the stage translate again."
        )
    return attention


def draw_attentions(attention: Sequence[Attention], count: int, folder: Path) -> None:
    """Draw `count` heat maps, of sentences spread over the test set, as attention-1.png and so on."""
    chosen = spread(easy_to_read([item.weights.shape for item in attention], count), count)
    for number, index in enumerate(chosen, start=1):
        item = attention[index]
        picture = folder / f"attention-{number}.png"
        draw_attention(item.weights, item.source, item.target, f"test sentence {index + 1}", picture)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table, atomically."""
    with atomic_path(path) as temporary:
        table.to_csv(temporary, index=False, encoding="utf-8", lineterminator="\n")


def write_json(content: object, path: Path) -> None:
    """Write readable JSON, atomically."""
    write_lines(path, [json.dumps(content, indent=2, ensure_ascii=False)])


if __name__ == "__main__":
    everything = load_params()
    run(
        everything.evaluate,
        everything.tokenize,
        (everything.download.source_language, everything.download.target_language),
        everything.train.seeds,
        everything.replace.enabled,
        *map(Path, sys.argv[1:]),
    )
