"""The paper's ablation tables: rows as parameters, and our figures next to those published."""

import json
import math
from collections import Counter
from pathlib import Path

import matplotlib.image
import pandas as pd
import pytest

from convs2s.config.layers import expanded
from convs2s.config.params import Params
from pipelines.results import ablation_report
from pipelines.results.ablation_report import compare
from pipelines.results.comparison import flat_metrics
from pipelines.results.paper import FOLDER, read_table
from tests.presets import content_of, params_of
from tests.test_end_to_end import run_all, toy_params

NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
EXPERIMENTS = pd.DataFrame(
    [
        {"row": "ConvS2S", "1.validation_perplexity": 6.0, "2.validation_perplexity": 7.0}
        | {"mean.bleu_tokenized": 30.0, "std.bleu_tokenized": 0.5, "mean.bleu": 31.0},
        {"row": "-source position", "1.validation_perplexity": 8.0, "mean.bleu_tokenized": 29.0}
        | {"without_replacement.mean.bleu_tokenized": 28.0, "std.bleu_tokenized": math.nan},
        {"row": "-target position", "failed": "train@1 ended with status 1"},
    ]
).assign(
    corpus="multi30k-en-de", commit="abc1234", experiment="table4-x",
    test_set="flickr: 1,000 lines", signature="tok:none",
)  # fmt: skip
EXPERIMENTS["model.encoder_kernels"] = [[5, 5, 5]] * 3  # as in the flow: a list is one value


def overridden(preset: str, changes: dict[str, object]) -> Params:
    """Return a preset with some values changed."""
    content = content_of(preset)
    for name, value in changes.items():
        section, key = name.split(".")
        content[section][key] = value
    return Params.model_validate(expanded(content))


def test_tables_have_the_papers_rows() -> None:
    """The rows were counted in the paper; those of Figure 2 are ours."""
    assert {name: len(read_table(name).rows) for name in NAMES} == {
        "table4": 4, "table5": 10, "table7": 9, "table8": 9, "figure2": 14,
    }  # fmt: skip
    best = {name: max(float(row.bleu or 0) for row in read_table(name).rows) for name in NAMES}
    assert best == {"table4": 21.7, "table5": 21.63, "table7": 21.63, "table8": 21.71, "figure2": 21.63}


@pytest.mark.parametrize("preset", ["ablation-en-de", "multi30k-en-de", "generated"])
@pytest.mark.parametrize("name", NAMES)
def test_every_row_gives_valid_parameters(name: str, preset: str) -> None:
    """Tables must suit the paper's model and small ones, and no two rows may give the same model."""
    base = params_of(preset)
    changes = [row.overrides(base.model) for row in read_table(name).rows]
    models = [overridden(preset, change).model for change in changes]
    same = Counter(model.model_dump_json() for model in models)
    assert max(same.values()) <= (2 if name == "figure2" else 1)  # both of its lines end at 13 and 5 layers


def test_a_row_is_the_model_that_the_paper_names() -> None:
    """Examples: 13 encoder layers with kernel 7; attention in layers 1, 3 and 5; widths as in the base."""
    base = params_of("ablation-en-de").model
    deep = next(row for row in read_table("table7").rows if (row.row, row.column) == ("7", "13"))
    assert deep.overrides(base) == {
        "model.encoder_widths": [512] * 13,
        "model.encoder_kernels": [7] * 13,
    }
    odd = next(row for row in read_table("table5").rows if row.row == "1,3,5")
    assert odd.overrides(base)["model.attention"] == [True, False, True, False, True]
    shallow = next(row for row in read_table("table8").rows if (row.row, row.column) == ("5", "3"))
    assert shallow.overrides(base)["model.attention"] == [True] * 3
    first = read_table("table5").rows[0]
    assert overridden("ablation-en-de", first.overrides(base)).model == base


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("rows: []", r"rows: found \[\], List should have at least 1 item"),
        ("rows: [{row: a, colour: 3}]", r"rows\.0\.colour: found 3, unknown key; remove it"),
        ("rows: [{row: a, column: '3'}]", r"row 'a' has column '3', the table None"),
        ("rows: [{row: a}, {row: a}]", r"row 'a', column None occurs twice"),
        (
            "rows: [{row: a, decoder: {layers: 2, kernel: 3}, attention: [3]}]",
            r"row 'a': attention in layer 3 of 2",
        ),
        ("rows: [{row: a, attention: [1]}]", r"row 'a' has attention but no decoder; wanted both"),
        (
            "rows: [{row: a, bleu: 21.70}]",
            r"rows\.0\.bleu: found 21\.7, wanted text; put it in quotes, with all its digits",
        ),
        ("rows: [{row: a, perplexity: about 6}]", r"rows\.0\.perplexity: found 'about 6'"),
        ("rows: [", r"is not valid YAML"),
    ],
)
def test_errors_in_a_file_name_it(tmp_path: Path, change: str, message: str) -> None:
    """There are several tables, so the error must say which one."""
    text = "title: t\nsection: s\nrow: r\ncolumn: null\n" + change + "\n"
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as error:
        read_table("mine", tmp_path)
    assert "mine.yaml" in str(error.value)
    with pytest.raises(FileNotFoundError, match=r"other\.yaml does not exist: wanted .* there: mine"):
        read_table("other", tmp_path)


def test_columns_are_numbers(tmp_path: Path) -> None:
    """Columns are sorted, and become the axis of a plot."""
    text = "title: t\nsection: s\nrow: r\ncolumn: c\nrows: [{row: a, column: wide}]\n"
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"rows\.0\.column: found 'wide', wanted text that matches"):
        read_table("mine", tmp_path)


def test_our_figures_are_shown_next_to_the_papers() -> None:
    """Figures are mean and deviation over seeds, with BLEU before replacement; no row is left out."""
    table = compare(read_table("table4"), EXPERIMENTS).set_index("row")
    both = table.loc["ConvS2S"]
    assert (both["paper_perplexity"], both["paper_bleu"]) == ("6.64", "21.7")
    assert (both["perplexity"], both["perplexity_std"]) == (6.5, pytest.approx(math.sqrt(0.5)))
    assert (both["bleu"], both["bleu_std"], both["seeds"]) == (30.0, 0.5, 2)
    assert (table.loc["-source position", "bleu"], table.loc["-source position", "seeds"]) == (28.0, 1)
    assert table["bleu"].isna().tolist() == [False, False, True, True]
    assert table["failed"].notna().tolist() == [False, False, True, False]
    assert table["seeds"].tolist() == [2, 1, 0, 0]
    assert table["paper_bleu"].tolist() == ["21.7", "21.3", "21.5", "21.2"]


def test_experiments_of_another_table_are_refused() -> None:
    """Their figures would be left out silently."""
    strange = EXPERIMENTS.assign(row="without both")
    with pytest.raises(ValueError, match=r"have the row\(s\) 'without both'; wanted .* '-source position'; "):
        compare(read_table("table4"), strange)


def test_the_table_is_written_as_markdown_and_picture(tmp_path: Path) -> None:
    """The table marks rows that failed or were not run."""
    text, picture = ablation_report.write("table4", read_table("table4"), EXPERIMENTS, tmp_path)
    assert (tmp_path / "table4.md").read_text(encoding="utf-8") == text
    assert "| ConvS2S | 6.64 | 6.50 ± 0.71 | 21.7 | 30.00 ± 0.50 | 2 |\n" in text
    assert "| -source position | 6.69 | 8.00 | 21.3 | 28.00 | 1 |\n" in text
    assert "| -target position | 6.63 | failed | 21.5 | failed | 0 |\n" in text
    assert "| -source & target position | 6.68 | not run | 21.2 | not run | 0 |\n" in text
    assert "Our test set: `flickr: 1,000 lines`.\nOur BLEU signature: `tok:none`.\n" in text
    assert "Ours: multi30k-en-de at commit abc1234; mean ± standard deviation over seeds; BLEU of tok" in text
    assert text.endswith("\n\n- -target position failed: train@1 ended with status 1\n")
    assert "tokens/s" not in text, "which older trainings did not count"
    assert matplotlib.image.imread(picture).std() > 0.01


def test_speed_is_shown_next_to_the_papers(tmp_path: Path) -> None:
    """The paper gives two speeds for Table 5 (§5.5); fewer attention layers make little difference."""
    cells = [
        {"row": "1,2,3,4,5", "target_tokens_per_second": 5399.6, "mean.bleu_tokenized": 30.0},
        {"row": "1", "mean.bleu_tokenized": 29.0},
    ]
    text, _ = ablation_report.write("table5", read_table("table5"), pd.DataFrame(cells), tmp_path)
    assert "| seeds | target tokens/s |\n" in text
    assert "| 1,2,3,4,5 | 6.65 | not run | 21.63 | 30.00 | 0 | 5,400 |\n" in text
    assert "| 1 | 7.15 | not run | 21.26 | 29.00 | 0 | - |\n" in text
    assert "processes 3,624 target words per second with attention in all five layers, 3,772 with" in text
    assert "count updates only, without validation" in text


def test_rows_with_columns_are_found_by_both(tmp_path: Path) -> None:
    """In Table 7 neither the kernel width nor the number of layers alone identifies a row."""
    cells = [{"row": "3", "column": 9, "mean.bleu_tokenized": 30.0, "1.validation_perplexity": 5.0}]
    text, picture = ablation_report.write("table7", read_table("table7"), pd.DataFrame(cells), tmp_path)
    head = "| kernel width | encoder layers | PPL, paper | PPL, ours | BLEU, paper | BLEU, ours | seeds |"
    assert head in text
    assert "| 3 | 9 | - | 5.00 | 21.17 | 30.00 | 1 |\n" in text
    assert "| 3 | 5 | - | not run | 20.61 | not run | 0 |\n" in text
    assert matplotlib.image.imread(picture).std() > 0.01


def test_a_users_own_table_needs_no_published_figures(tmp_path: Path) -> None:
    """There are none for a new idea."""
    text = (
        "title: t\nrow: r\nrows:\n- row: ConvS2S\n- row: -source position\n"
        "  set: {train.dropout: 0.3, model.encoder_widths: 4 x 256, model.encoder_kernels: 3}\n"
    )
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    own = read_table("mine", tmp_path)
    base = params_of("generated")
    assert own.rows[0].overrides(base.model) == {}
    changed = overridden("generated", own.rows[1].overrides(base.model))
    assert (changed.train.dropout, changed.model.encoder_widths) == (0.3, [256] * 4)
    text, picture = ablation_report.write("mine", own, EXPERIMENTS[:2], tmp_path)
    assert text.startswith("**t**\n")
    assert "| ConvS2S | - | 6.50 ± 0.71 | - | 30.00 ± 0.50 |" in text
    assert matplotlib.image.imread(picture).std() > 0.01
    ablation_report.write("mine", own, EXPERIMENTS[2:2], tmp_path)  # every row failed before it had metrics


@pytest.mark.slow
def test_table_4_is_run_at_toy_size(tmp_path: Path) -> None:
    """Every figure is found after real training: two seeds per row, word vocabularies and replacement."""
    table = read_table("table4")
    rows = []
    for number, row in enumerate(table.rows):
        data = tmp_path / str(number)
        data.mkdir()
        base = toy_params(data, "word")
        model = base.model.model_copy(
            update={name.removeprefix("model."): value for name, value in row.overrides(base.model).items()}
        )
        run_all(base.model_copy(update={"model": model}), data)
        files = [*sorted(data.glob("trained/*/metrics.json")), data / "evaluation" / "metrics.json"]
        found = {str(file): {"data": json.loads(file.read_text(encoding="utf-8"))} for file in files}
        rows.append({"row": row.row, "corpus": base.package.name, "commit": "none", **flat_metrics(found)})
    text, picture = ablation_report.write("table4", table, pd.DataFrame(rows), tmp_path)
    ours = compare(table, pd.DataFrame(rows))
    assert ours["seeds"].tolist() == [2, 2, 2, 2]
    assert ours["perplexity"].between(1, 400).all() and ours["perplexity"].nunique() == 4
    assert ours[["perplexity_std", "bleu", "bleu_std"]].notna().all(axis=None)
    kept = [row["without_replacement.mean.bleu_tokenized"] for row in rows]
    assert ours["bleu"].tolist() == kept != [row["mean.bleu_tokenized"] for row in rows]
    assert "not run" not in text and "failed" not in text
    assert matplotlib.image.imread(picture).std() > 0.01
