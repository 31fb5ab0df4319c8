"""Whether a difference of scores is more than chance: sacreBLEU's paired bootstrap (Koehn, 2004)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sacrebleu.significance import PairedTest

from convs2s.score.corpus_scores import METRICS, choose_tokenizer
from convs2s.score.kinds import TITLES
from pipelines.report.run import Run, group

MEANING = (
    "p: how often chance alone gives such a difference on a test set like this one, by sacreBLEU's paired "
    "bootstrap; below 0.05, the difference is usually called significant; equal translations have none. Of "
    "several seeds without an ensemble, the first one's translations are compared. Another seed alone can "
    "make a significant difference: for a claim, train several."
)


class Comparison(NamedTuple):
    """A run's score, and its difference from that of the first run, which has none itself."""

    run: Run
    score: float
    mean: float
    """Over 1,000 bootstrap samples of the test set."""
    interval: float
    """Half the width of the interval that has 95 % of them."""
    difference: float | None
    p: float | None
    """None if the translations are the same, for which sacreBLEU has the least p there is."""


class Significance(NamedTuple):
    """Runs compared with the first one by one score, and sacreBLEU's signature of the comparison."""

    title: str
    comparisons: list[Comparison]
    signature: str


def compare_all(runs: Sequence[Run]) -> list[Significance]:
    """Return the comparisons of runs that have the same test set, each with the first of them, by score."""
    groups = [same for same in group(runs, identify_references) if len(same) > 1]
    return [compared for same in groups for compared in compare_scores(same)]


def identify_references(run: Run) -> str:
    """Return a text that is equal for runs whose scores can be compared: the test set as it is scored."""
    references = [sentence.reference for sentence in run.sentences]
    return "\n".join([run.test_set, choose_tokenizer(run.sections["languages"][1]), *references])


def compare_scores(runs: Sequence[Run]) -> list[Significance]:
    """Compare each run with the first, by each metric of sacreBLEU that the stage evaluate computes.

    All must have the same references, by `identify_references`. These are the figures of sacreBLEU's command:
    `sacrebleu REFERENCE -i FIRST OTHER ... --metrics bleu chrf --paired-bs`.
    """
    references = [sentence.reference for sentence in runs[0].sentences]
    systems: list[tuple[str, Sequence[str]]] = [
        (str(number), [sentence.translation for sentence in run.sentences]) for number, run in enumerate(runs)
    ]
    tokenizer = choose_tokenizer(runs[0].sections["languages"][1])
    metrics = {name: make_metric(tokenizer) for name, make_metric in METRICS.items()}
    signatures, columns = PairedTest(systems, metrics, [references], test_type="bs")()
    found = []
    for name, title in zip(metrics, signatures, strict=True):  # sacreBLEU has names of its own for them
        results: Sequence[Any] = columns[title]  # typed as names of systems, too
        first = results[0].score
        comparisons = [
            Comparison(
                run=run,
                score=result.score,
                mean=float(result.mean),
                interval=float(result.ci),
                difference=None if result is results[0] else result.score - first,
                p=None if translations == systems[0][1] else result.p_value,
            )
            for run, result, (_, translations) in zip(runs, results, systems, strict=True)
        ]
        found.append(Significance(TITLES[name], comparisons, str(signatures[title])))
    return found
