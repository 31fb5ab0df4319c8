"""What `make repro` prints at its end: the scores, example translations, and where everything is."""

import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from convs2s.score.identity import SetIdentity
from convs2s.score.tables import DIGITS
from convs2s.text.corpus.files import read_lines
from pipelines.results.reading import existing, flat, read

WIDTH = 100  # columns
REMEDY = (
    "the pipeline has not been run to its end. Run `make repro` (or `dvc repro`), which makes it; "
    "`dvc status` shows what is missing."
)
TITLES = {
    "text": "unknown words", "bleu": "BLEU", "bleu_tokenized": "tokenized BLEU", "chrf": "chrF2",
    "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "length_ratio": "length ratio",
    "unknown_words": "<unk>",
}  # fmt: skip
RESULTS = {
    "evaluation/metrics.json": "the scores; compare runs by: dvc metrics diff",
    "evaluation/scores.csv": "the scores as a table",
    "evaluation/signatures.json": "how they were computed",
    "evaluation/by_length.csv": "scores by source length",
    "evaluation/examples.tsv": "the examples above, with a score for each",
    "evaluation/pictures": "attention heat maps and score plots (PNG)",
    "replaced": "translations of the test set, a folder per model: plain.txt, replaced.txt",
    "translations": "their tokens, scores and attention, a folder per model",
    "models/*": "model to use: convs2s translate --model {path}",
    "trained/*/curves": "training curves: dvc plots show",
    "filtered/rules.csv": "how many pairs each filter rule removed",
    "alignment/dictionary.tsv": "source words with the target words they are aligned with",
}


def report(data: Path) -> str:
    """Return the report on the results in `data`; raise FileNotFoundError if the pipeline has not ended."""
    evaluation = data / "evaluation"
    scores = pd.read_csv(existing(evaluation / "scores.csv", REMEDY), dtype={"member": str})
    signatures = read(evaluation / "signatures.json", REMEDY)
    test_set = SetIdentity.read(existing(evaluation / "test_set.json", REMEDY))
    named = aligned({TITLES[name]: signature for name, signature in signatures.items()})
    corpus = [pd.Series(figures(path)).to_string() for path in data.glob("filtered/report.json")]
    trained = {path.parent.name: figures(path) for path in sorted(data.glob("trained/*/metrics.json"))}
    paths = {
        str(path): text.format(path=path) for one, text in RESULTS.items() for path in sorted(data.glob(one))
    }
    sections = {
        "Scores of the test set": [score_table(scores), "", wrapped("of ", str(test_set)), "", *named],
        "Example translations": [examples(existing(evaluation / "examples.tsv", REMEDY))],
        "Corpus": corpus,
        "Training": [pd.DataFrame(trained).rename_axis(columns="seed").to_string()] if trained else [],
        "Where everything is": aligned(paths),
    }
    texts = ["\n".join([title, "-" * len(title), *lines]) for title, lines in sections.items() if lines]
    return "\n\n".join(texts) + "\n"


def aligned(texts: Mapping[str, str]) -> list[str]:
    longest = max(map(len, texts), default=0)
    return [f"{name:{longest}}  {text}" for name, text in texts.items()]


def score_table(scores: pd.DataFrame) -> str:
    """Return the score table: a row per seed, their mean and standard deviation, and the ensemble."""
    if "std" not in set(scores["member"]):  # with one seed the mean only repeats it
        scores = scores[scores["member"] != "mean"]
    if (scores["text"] == "plain").all():
        scores = scores.drop(columns="text")
    models = scores["member"].replace({"std": "standard deviation", r"^(\d+)$": r"seed \1"}, regex=True)
    table = scores[[name for name in TITLES if name in scores]].replace({"text": {"plain": "kept"}})
    table = table.set_axis(models.rename(None)).rename_axis(columns="model").rename(columns=TITLES)
    formats = {TITLES[name]: f"{{:,.{digits}f}}".format for name, digits in DIGITS.items()}
    return table.to_string(formatters=formats)


def examples(path: Path) -> str:
    """Return the examples, wrapped, with an empty line between two."""
    header, *rows = [line.split("\t") for line in read_lines(path)]
    texts = []
    for one in (dict(zip(header, row, strict=True)) for row in rows):
        model = f"seed {one['model']}" if one["model"].isdigit() else f"the {one['model']}"
        head = f"line {one['line']}, by {model}: sentence BLEU {one['bleu']}, chrF2 {one['chrf']}"
        sides = (wrapped(f"  {name:12}", one[name]) for name in ("source", "hypothesis", "reference"))
        texts.append("\n".join([head, *sides]))
    return "\n\n".join(texts)


def wrapped(label: str, text: str) -> str:
    """Return a text behind its label; no control character of a corpus reaches the terminal."""
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text) or "(empty)"
    return textwrap.fill(
        visible, WIDTH, initial_indent=label, subsequent_indent=" " * len(label), break_on_hyphens=False
    )


def figures(path: Path) -> dict[str, str]:
    """Return the nested figures of a JSON file as one level, for reading: 30,000, 12.35 or 0.04321."""
    found = {re.sub("[._]", " ", name): value for name, value in flat(read(path)).items()}
    return {
        name: f"{value:,.4g}" if 0 < abs(value) < 1 else f"{value:,.{2 if value % 1 else 0}f}"
        for name, value in found.items()
    }


def main(arguments: list[str]) -> int:
    """Print the report on the folder given, `data` if none is; return the exit status."""
    try:
        text = report(Path(arguments[0] if arguments else "data"))
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    if hasattr(sys.stdout, "reconfigure"):  # show ? where the terminal's encoding lacks a character
        sys.stdout.reconfigure(errors="replace")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
