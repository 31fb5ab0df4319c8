"""The values of params.yaml that each stage of dvc.yaml depends on: sections or single keys.

A stage reruns after an edit of one of these, and of no other. Which checkpoints and event files are written,
how several machines meet and the list of seeds change no result of a training.
"""

LANGUAGES = ("download.source_language", "download.target_language")
WORDS = (*LANGUAGES, "tokenize")
TRAINING = (
    "train.dropout", "train.batch_by", "train.batch_sentences", "train.max_tokens", "train.learning_rate",
    "train.momentum", "train.optimizer", "train.warmup_updates", "train.clip_norm", "train.label_smoothing",
    "train.tied_embeddings", "train.validate_updates", "train.average", "train.anneal_factor",
    "train.anneal_against", "train.min_epochs_before_anneal", "train.anneal_after_epoch",
    "train.min_learning_rate", "train.patience", "train.max_epochs", "train.precision", "train.compile",
    "train.workers", "train.nodes", "train.start_from",
)  # fmt: skip
"""Training parameters that have an effect; the model card shows them."""

PARAMS: dict[str, tuple[str, ...]] = {
    f"download@{split}": (*LANGUAGES, "download.folder", "download.references", *keys)
    for split, keys in {
        "train": ("download.train", "download.train_pairs"),
        "valid": ("download.valid",),
        "development": ("download.development",),
        "test": ("download.test",),
    }.items()
} | {
    "augment": ("augment.models", "augment.text"),
    "truecase": (*WORDS, "train.start_from"),
    "tokenize": WORDS,
    "filter": (*LANGUAGES, "filter", "augment.tag", "augment.keep"),
    "vocabulary": ("vocabulary", "train.start_from"),
    "encode": (),
    "align": ("align.backend", "align.iterations", "replace.enabled"),
    "candidates": ("align",),
    "train": ("model", *TRAINING, "train.selection"),
    "tune": ("translate", "tune"),
    "tune-ensemble": ("train.seeds", "translate", "tune"),
    "translate": (*WORDS, "translate"),
    "ensemble": (*WORDS, "train.seeds", "translate"),
    "replace": (*WORDS, "replace"),
    "replace-ensemble": (*WORDS, "replace"),
    "evaluate": (*WORDS, "train.seeds", "replace", "evaluate"),
    "package": (*WORDS, *TRAINING, "translate", "replace", "package"),
}


def module_of(name: str) -> str:
    """Return the module that a stage of dvc.yaml runs."""
    return {"ensemble": "translate"}.get(name, name.partition("@")[0].removesuffix("-ensemble"))


def row_of(name: str) -> str:
    """Return the row of a stage item of dvc.yaml in the table: download@train, but train for train@1."""
    return name if name in PARAMS else name.partition("@")[0]


def params_of(name: str) -> tuple[str, ...]:
    """Return the values that a stage item of dvc.yaml depends on."""
    return PARAMS.get(row_of(name), ())
