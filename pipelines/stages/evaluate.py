"""Stage evaluate: translations of the test set -> scores, tables and pictures."""

from dataclasses import asdict
from pathlib import Path

from convs2s.base.files import (
    atomic_path,
    further_references,
    read_lines,
    unequal_lines,
    write_json,
    write_lines,
)
from convs2s.config.results import EvaluateParams, ReplaceParams
from convs2s.config.section import Languages, Seeds
from convs2s.config.tokenize import TokenizeParams
from convs2s.decode.translations import Attention, read_attention
from convs2s.score.evaluation import (
    Evaluation,
    ReferenceSet,
    ScoredText,
    choose_examples,
    evaluate,
    tokenize_references,
)
from convs2s.score.identity import identify
from convs2s.score.pictures import draw_layers, easy_to_read
from convs2s.score.tables import join_cells, spread
from convs2s.text.words.tokenization import Tokenizer


def run(
    params: EvaluateParams,
    tokenize: TokenizeParams,
    languages: Languages,
    seeds: Seeds,
    replace: ReplaceParams,
    replaced: Path,
    translations: Path,
    test: Path,
    out: Path,
) -> None:
    """Score the texts in `replaced`/MEMBER for each seed, and for the ensemble if there is one.

    Writes to `out` metrics.json, signatures.json, scores.csv, by_length.csv, examples.tsv, pictures/, and
    test_set.json: the test set's name, number of lines and hash. ROUGE takes all references; BLEU and chrF
    take the first. All scores except tokenized BLEU are computed on detokenized text.
    With `replace.enabled`, the stage replace wrote replaced.txt as well as plain.txt: the main scores then
    have unknown words replaced, and scores without replacement are reported separately. `languages` are the
    source and target language. Heat maps show the attention of the first seed, from `translations`/SEED.

    Raises:
        FileNotFoundError: if a translation is missing.
        ValueError: if a translation or the attention does not have as many sentences as the test set, or
            there is nothing to score.
    """
    references = read_references(test, tokenize, languages)
    members = [str(seed) for seed in seeds] + ["ensemble"] * len(params.ensembles)
    texts = ["plain", "replaced"] if replace.enabled else ["plain"]
    found = [read_text(replaced, member, text, test, references) for text in texts for member in members]
    evaluation = evaluate(found, references, params.rouge)
    write_evaluation(evaluation, out)
    identity = identify(test)
    write_json(out / "test_set.json", asdict(identity))
    print(f"scored on {identity}")
    best = found[-1 if params.ensembles else -len(seeds)]  # final text of the ensemble, or of the first seed
    write_lines(out / "examples.tsv", join_cells(choose_examples(best, references, params.examples)))
    with atomic_path(out / "pictures") as folder:
        folder.mkdir()
        attention = read_sentences(translations / members[0] / "attention.npz", len(references.sources))
        shapes = [item.weights.shape for item in attention]
        chosen = spread(easy_to_read(shapes, params.heat_maps), params.heat_maps)
        for number, index in enumerate(chosen, start=1):
            item, title = attention[index], f"test sentence {index + 1}"
            draw_layers([(title, item.weights)], item.source, item.target, folder / f"attention-{number}.png")


def read_references(test: Path, tokenize: TokenizeParams, languages: tuple[str, str]) -> ReferenceSet:
    """Read the test set and tokenize it like the training text."""
    source, target = test / "source.txt", test / "target.txt"
    sources, references = list(read_lines(source)), list(read_lines(target))
    if len(sources) != len(references):
        raise unequal_lines(source, len(sources), target, len(references))
    further = [list(read_lines(path)) for path in further_references(test)]
    tokenizers = (Tokenizer(language, tokenize) for language in languages)
    return tokenize_references(sources, references, further, *tokenizers)


def read_text(replaced: Path, member: str, text: str, test: Path, references: ReferenceSet) -> ScoredText:
    """Read a translation and check that it has a line per sentence of the test set."""
    paths = replaced / member / f"{text}.txt", replaced / member / f"{text}.tok.txt"
    lines, tokenized = (list(read_lines(path)) for path in paths)
    expected = len(references.references)
    for path, found in zip(paths, (lines, tokenized), strict=True):
        if len(found) != expected:
            raise unequal_lines(path, len(found), test / "target.txt", expected)
    return ScoredText(member, text, lines, tokenized)


def write_evaluation(evaluation: Evaluation, out: Path) -> None:
    """Write the tables of scores, the metrics and the signatures."""
    for table, name in ((evaluation.scores, "scores.csv"), (evaluation.by_length, "by_length.csv")):
        with atomic_path(out / name) as temporary:
            table.to_csv(temporary, index=False, encoding="utf-8", lineterminator="\n")
    write_json(out / "metrics.json", evaluation.metrics)
    write_json(out / "signatures.json", evaluation.signatures)


def read_sentences(path: Path, sentences: int) -> list[Attention]:
    """Read attention and check that it covers every sentence of the test set."""
    attention = read_attention(path)
    if len(attention) != sentences:
        raise ValueError(
            f"{path}: expected the attention of {sentences:,} sentences, one per line of the test set, found "
            f"{len(attention):,}. Run: dvc repro --force translate"
        )
    return attention
