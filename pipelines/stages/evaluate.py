"""Stage evaluate: translations of the test set -> scores, tables and pictures."""

from dataclasses import asdict
from pathlib import Path

from convs2s.base.files import atomic_path, read_json, read_lines, write_json, write_lines
from convs2s.config.results import EvaluateParams, ReplaceParams
from convs2s.config.section import Languages, Seeds
from convs2s.config.tokenize import TokenizeParams
from convs2s.decode.translations import describe_unknown, read_attention, read_hypotheses
from convs2s.score.evaluation import ScoredText, choose_examples, evaluate, read_references
from convs2s.score.identity import identify
from convs2s.score.pictures import draw_layers, easy_to_read
from convs2s.score.tables import join_cells, spread


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
    source and target language. metrics.json counts the characters of the source that the models never saw,
    unless there are none. Heat maps show the attention of the first seed, from `translations`/SEED.
    """
    references = read_references(test, tokenize, languages)
    first_seed = str(seeds[0])
    members = [str(seed) for seed in seeds]
    if params.ensembles:
        members.append("ensemble")
    texts = ["plain", "replaced"] if replace.enabled else ["plain"]
    scored = {
        (text, member): read_translation(replaced / member, text) for text in texts for member in members
    }
    evaluate(list(scored.values()), references, params.rouge, out)
    sentences = read_hypotheses(translations / first_seed / "hypotheses.jsonl")
    if unknown := sum(hypotheses[0].unknown_characters for _, hypotheses in sentences):
        metrics = read_json(out / "metrics.json")
        write_json(out / "metrics.json", {**metrics, "unknown_characters": unknown})
        print(f"test set: {describe_unknown(unknown)}")
    identity = identify(test)
    write_json(out / "test_set.json", asdict(identity))
    print(f"scored on {identity}")
    shown = scored[texts[-1], "ensemble" if params.ensembles else first_seed]
    write_lines(out / "examples.tsv", join_cells(choose_examples(shown, references, params.examples)))
    with atomic_path(out / "pictures") as folder:
        folder.mkdir()
        attention = read_attention(translations / first_seed / "attention.npz")
        shapes = [sentence.weights.shape for sentence in attention]
        chosen = spread(easy_to_read(shapes, params.heat_maps), params.heat_maps)
        for number, index in enumerate(chosen, start=1):
            sentence = attention[index]
            maps = [(f"test sentence {index + 1}", sentence.weights)]
            draw_layers(maps, sentence.source, sentence.target, folder / f"attention-{number}.png")


def read_translation(folder: Path, text: str) -> ScoredText:
    """Read a member's translation."""
    lines = list(read_lines(folder / f"{text}.txt"))
    tokenized = list(read_lines(folder / f"{text}.tok.txt"))
    return ScoredText(folder.name, text, lines, tokenized)
