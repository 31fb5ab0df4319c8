"""What `make repro` prints at its end: the scores, example translations, and where everything is."""

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from convs2s.score.identity import SetIdentity
from convs2s.text.corpus.files import read_lines
from pipelines.results.reading import existing, flat, read

WIDTH = 100  # columns
REMEDY = (
    "the pipeline has not been run to its end. Run `make repro` (or `dvc repro`), which makes it; "
    "`dvc status` shows what is missing."
)
COLUMNS = {
    **{"bleu": ("BLEU", "{:.2f}"), "bleu_tokenized": ("tokenized BLEU", "{:.2f}")},
    **{"chrf": ("chrF2", "{:.2f}"), "rouge1": ("ROUGE-1", "{:.2f}"), "rouge2": ("ROUGE-2", "{:.2f}")},
    **{"rougeL": ("ROUGE-L", "{:.2f}"), "length_ratio": ("length ratio", "{:.4f}")},
    "unknown_words": ("<unk>", "{:,.1f}"),
}
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
    """Return the report on the results in `data`, as plain text of at most 100 columns where words allow.

    Raises:
        FileNotFoundError: if the pipeline has not been run to its end.
    """
    evaluation = data / "evaluation"
    scores = pd.read_csv(existing(evaluation / "scores.csv", REMEDY), dtype={"member": str})
    signatures = read(evaluation / "signatures.json", REMEDY)
    test_set = SetIdentity.read(existing(evaluation / "test_set.json", REMEDY))
    named = aligned({COLUMNS[name][0]: signature for name, signature in signatures.items()})
    corpus, trained = data / "filtered" / "report.json", sorted(data.glob("trained/*/metrics.json"))
    trainings = {path.parent.name: {"seed": path.parent.name} | figures(path) for path in trained}
    paths = {path: text for pattern, text in RESULTS.items() for path in sorted(data.glob(pattern))}
    sections = {
        "Scores of the test set": [*score_lines(scores), "", *wrapped("of ", str(test_set)), "", *named],
        "Example translations": example_lines(existing(evaluation / "examples.tsv", REMEDY)),
        "Corpus": aligned(
            {name: f"{value:>12}" for name, value in (figures(corpus) if corpus.is_file() else {}).items()}
        ),
        "Training": pd.DataFrame(trainings).to_string(header=False).split("\n") if trainings else [],
        "Where everything is": aligned({str(path): text.format(path=path) for path, text in paths.items()}),
    }
    texts = ["\n".join([title, "-" * len(title), *lines]) for title, lines in sections.items() if lines]
    return "\n\n".join(texts) + "\n"


def aligned(texts: Mapping[str, str]) -> list[str]:
    """Return a line per name, with all texts in one column."""
    width = max(map(len, texts), default=0)
    return [f"{name:{width}}  {text}" for name, text in texts.items()]


def score_lines(scores: pd.DataFrame) -> list[str]:
    """Return the score table: a row per seed, their mean and standard deviation, and the ensemble."""
    # With one seed the mean only repeats it.
    rows = scores if "std" in set(scores["member"]) else scores[scores["member"] != "mean"]
    models = [{"std": "standard deviation"}.get(m, f"seed {m}" if m.isdigit() else m) for m in rows["member"]]
    width = max(map(len, models))
    shown = {"model".ljust(width): [model.ljust(width) for model in models]}
    if (rows["text"] != "plain").any():
        shown["unknown words"] = [{"plain": "kept"}.get(text, text) for text in rows["text"]]
    for name, (title, form) in COLUMNS.items():
        if name in rows:
            shown[title] = [form.format(value) for value in rows[name]]
    return pd.DataFrame(shown).to_string(index=False).split("\n")


def example_lines(path: Path) -> list[str]:
    """Return the examples, wrapped, with an empty line between two."""
    header, *rows = [line.split("\t") for line in read_lines(path)]
    lines = []
    for row in rows:
        one = dict(zip(header, row, strict=True))
        model = f"seed {one['model']}" if one["model"].isdigit() else f"the {one['model']}"
        lines += ["", f"line {one['line']}, by {model}: sentence BLEU {one['bleu']}, chrF2 {one['chrf']}"]
        for name in ("source", "hypothesis", "reference"):
            lines += wrapped(f"  {name:12}", one[name])
    return lines[1:]


def wrapped(label: str, text: str) -> list[str]:
    """Return a text behind its label, on as many lines as it needs."""
    # A sentence may hold control characters; none may reach the terminal.
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text) or "(empty)"
    lines = textwrap.wrap(visible, WIDTH - len(label), break_on_hyphens=False)
    return [(" " * len(label) if i else label) + line for i, line in enumerate(lines)] or [label.rstrip()]


def figures(path: Path) -> dict[str, str]:
    """Return the nested figures of a JSON file as one level, for reading."""
    return {
        name.translate(str.maketrans("._", "  ")): number(value) for name, value in flat(read(path)).items()
    }


def number(value: Any) -> str:
    """Return a figure for reading: 30,000 or 12.35."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.4g}" if abs(value) < 1 else f"{value:,.2f}"


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
