"""Stage package@SEED: a trained model and everything it needs to translate text -> a folder for users."""

from pathlib import Path

from convs2s.base.files import read_json, read_lines
from convs2s.config.results import PackageParams, ReplaceParams
from convs2s.config.section import Languages
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.train import TrainParams
from convs2s.config.translate import PackagedTranslateParams, TranslateSection
from convs2s.decode.length_normalization import read_alpha, with_alpha
from convs2s.package.facts import Facts
from convs2s.package.folder import Settings, write_package
from convs2s.package.model_card import describe_model, model_card
from convs2s.score.identity import SetIdentity
from convs2s.text.corpus.mistakes import describe_mistakes
from convs2s.text.vocabulary.codec import read_kind


def run(
    params: PackageParams,
    tokenize: TokenizeParams,
    translate: TranslateSection,
    replace: ReplaceParams,
    languages: Languages,
    train: TrainParams,
    trained: Path,
    vocabulary: Path,
    truecasers: Path,
    alignment: Path,
    candidates: Path,
    tuned: Path,
    evaluation: Path,
    filtering: Path,
    seed: int,
    out: Path,
) -> None:
    """Write the model folder out/SEED, for `convs2s translate` and `convs2s.load`.

    The model card takes this seed's scores from metrics.json, signatures.json and test_set.json in
    `evaluation`, sentences to try from examples.tsv there, the precision of the training from
    trained/SEED/metrics.json, and size and mistakes of the training data from `filtering`, report.json of the
    stage filter. The stage tune has written tuned/SEED/alpha.json.
    """
    model = trained / str(seed) / "model"
    training = read_json(trained / str(seed) / "metrics.json")
    report = read_json(filtering)
    kind = read_kind(vocabulary / "segmentation.json")
    alpha = read_alpha(tuned / str(seed) / "alpha.json")
    facts = Facts(
        name=params.name,
        languages=languages,
        data_license=params.data_license,
        domain=params.domain,
        pairs=report["train"]["pairs"],
        words=(report["train"]["source_words"], report["train"]["target_words"]),
        mistakes=describe_mistakes(report),
        model=describe_model(model, kind) | {"products in training": training["precision"]},
        seed=seed,
        training={f"train.{key}": value for key, value in train.model_dump(mode="json").items()},
        scores=read_json(evaluation / "metrics.json")["seeds"][str(seed)],
        signatures=read_json(evaluation / "signatures.json"),
        test_set=str(SetIdentity(**read_json(evaluation / "test_set.json"))),
        examples=read_examples(evaluation / "examples.tsv"),
    )
    search = with_alpha(translate, alpha).model_dump()
    packaged = PackagedTranslateParams(**search, split_sentences=params.split_sentences)
    settings = Settings(languages, tokenize, packaged, replace.enabled)
    write_package(
        out / str(seed),
        model=model,
        vocabulary=vocabulary,
        dictionary=alignment / "dictionary.tsv",
        candidates=candidates / "candidates.npz",
        settings=settings,
        card=model_card(facts),
        truecasers=truecasers,
        facts=facts,
    )


def read_examples(path: Path) -> list[tuple[str, str]]:
    """Return source and reference of each row of the table of examples."""
    header, *rows = (line.split("\t") for line in read_lines(path))
    examples = [dict(zip(header, row, strict=True)) for row in rows]
    return [(example["source"], example["reference"]) for example in examples]
