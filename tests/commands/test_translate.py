"""The command `convs2s translate` as a user runs it."""

import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import convs2s
from convs2s.cli import main, parser
from convs2s.commands.translate import Mode, choose_mode
from convs2s.model.description import seal
from tests.package.small_package import edit_settings, write_small_package


def run(folder: Path, text: str, *options: str) -> list[str]:
    """Translate from file to file, in this process to save time; return the lines written."""
    (folder / "in.txt").write_text(text, encoding="utf-8", newline="\n")
    files = ("--input", str(folder / "in.txt"), "--output", str(folder / "out.txt"))
    assert main(["translate", *options, "--device", "cpu", *files]) == 0
    out = (folder / "out.txt").read_bytes().decode("utf-8")
    assert out.endswith("\n") or not out
    return out.split("\n")[:-1]


TEXT = "ein Haus.\n\nein\u2028Hund\r\nund"  # the last line has no end


def test_standard_input_gives_a_line_for_each_line(
    package: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    r"""Line i translates line i: empty lines stay empty, and only \n and \r\n end a line, not U+2028."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert main(["translate", "--model", str(package), "--device", "cpu"]) == 0
    out, error = capfdbinary.readouterr()
    lines = out.decode("utf-8").split("\n")
    assert len(lines) == 5
    assert lines[1] == lines[4] == ""
    assert b"\r" not in out
    assert error == b""


def test_files_give_the_lines_of_standard_input(
    package: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script may use either, and must get the same results."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert main(["translate", "--model", str(package), "--device", "cpu"]) == 0
    lines = capfdbinary.readouterr().out.decode("utf-8").split("\n")[:-1]
    assert run(tmp_path, TEXT, "--model", str(package)) == lines


def test_an_empty_file_gives_an_empty_file(package: Path, tmp_path: Path) -> None:
    """A line in the output would be the translation of a line that is not there."""
    assert run(tmp_path, "", "--model", str(package)) == []


PARAGRAPH = "ein Haus. ein Hund.\n"


def test_the_sentences_of_a_line_are_translated_if_requested(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default, a line of a file is one sentence; if many are not, a message says what to do."""
    model = ("--model", str(package))
    sentences = run(tmp_path, "ein Haus.\nein Hund.\n", *model)
    assert capsys.readouterr().err == ""
    assert run(tmp_path, PARAGRAPH, *model, "--split-sentences") == [" ".join(sentences)]
    assert capsys.readouterr().err == ""
    whole = run(tmp_path, PARAGRAPH, *model)
    assert whole == run(tmp_path, PARAGRAPH, *model, "--no-split-sentences") != [" ".join(sentences)]
    assert capsys.readouterr().err == (
        "convs2s: 1 of 1 lines have several sentences, of which a model that was trained on single ones may "
        "leave some out: --split-sentences translates each (--no-split-sentences hides this message)\n"
    )
    run(tmp_path, PARAGRAPH, *model, "--n-best", "1")
    assert ": give one a line (" in capsys.readouterr().err
    run(tmp_path, PARAGRAPH + 9 * "ein Haus.\n", *model)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "typed", "other"),
    [
        ("", Mode("text"), Mode("sentence", "--split-sentences translates each")),
        ("--scores", Mode("sentence", "give one a line"), Mode("sentence", "give one a line")),
        ("--split-sentences", Mode("text"), Mode("text")),
        ("--no-split-sentences", Mode("sentence"), Mode("sentence")),
        ("--score target.txt", Mode("pair"), Mode("pair")),
        ("--format html", Mode("page"), Mode("page")),
    ],
)
def test_options_decide_what_a_line_is(options: str, typed: Mode, other: Mode) -> None:
    """Only without them it matters whether lines are typed, or what the model folder says."""
    parsed = parser().parse_args(["translate", "--model", "model", *options.split()])
    assert choose_mode(parsed, is_typed=True, folder_splits=True) == typed
    assert choose_mode(parsed, is_typed=False, folder_splits=True) == other
    without_advice = Mode("sentence") if other.line == "sentence" else other
    assert choose_mode(parsed, is_typed=True, folder_splits=False) == without_advice


def test_samples_of_sentences_do_not_depend_on_the_chunk(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are numbered through the whole file."""
    sample = ("--model", str(package), "--split-sentences", "--sample", "--batch-sentences", "1")
    lines = run(tmp_path, 4 * PARAGRAPH, *sample)
    assert len(set(lines)) > 1
    monkeypatch.setattr("convs2s.commands.translate.CHUNK_BATCHES", 1)
    assert run(tmp_path, 4 * PARAGRAPH, *sample) == lines


@pytest.mark.parametrize(
    "option", ["--n-best=2", "--scores", "--prefix=in.txt", "--alignment=a.txt", "--score=a"]
)
def test_what_belongs_to_one_sentence_needs_one_a_line(
    package: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A score or a link of several sentences would have no meaning."""
    assert main(["translate", "--model", str(package), "--split-sentences", option]) == 2
    name = option.partition("=")[0]
    assert f"{name} is for one sentence a line." in capsys.readouterr().err


def test_characters_that_the_model_never_saw_are_copied_and_counted(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line at the end says how many; without any there is none."""
    model = ("--model", str(package))
    [plain] = run(tmp_path, "ein Haus.", *model)
    assert capsys.readouterr().err == ""
    [translation] = run(tmp_path, "🙂 ein Haus.", *model)
    assert translation == f"🙂 {plain}".strip()
    advice = "1 unknown character: never seen in training, so copied, not translated"
    assert capsys.readouterr().err == f"convs2s: {advice}\n"


def test_literals_are_kept_unless_the_model_is_to_translate_them(package: Path, tmp_path: Path) -> None:
    """Not all that looks like a placeholder is one."""
    model = ("--model", str(package))
    [plain] = run(tmp_path, "ein Haus.", *model)
    assert run(tmp_path, "%s ein Haus.", *model) == [f"%s {plain}".strip()]
    assert "%s" not in run(tmp_path, "%s ein Haus.", *model, "--no-keep-literals")[0]


def test_characters_that_the_model_never_saw_are_left_out_of_scores(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of both sides are counted, as there is no translation to copy them to."""
    (tmp_path / "target.txt").write_text("ein ☃ Haus\n", encoding="utf-8")
    run(tmp_path, "🙂 ein Haus.", "--model", str(package), "--score", str(tmp_path / "target.txt"))
    assert capsys.readouterr().err == "convs2s: 2 unknown characters: never seen in training, so left out\n"


def test_an_n_best_list_has_the_format_of_moses(package: Path, tmp_path: Path) -> None:
    """Number from 0, text, score; best first, empty lines included."""
    model = ("--model", str(package))
    plain = run(tmp_path, "ein Haus.\n\n", *model)
    rows = [line.split(" ||| ") for line in run(tmp_path, "ein Haus.\n\n", *model, "--n-best", "2")]
    assert [row[0] for row in rows] == ["0", "0", "1"]
    assert float(rows[0][2]) > float(rows[1][2])
    assert [rows[0][1], rows[2][1]] == plain


def test_scores_stand_before_their_translations(package: Path, tmp_path: Path) -> None:
    """A text may contain any character, so it comes last; the score is that of the n-best list."""
    model = ("--model", str(package))
    best, *_ = run(tmp_path, "ein Haus.\n\n", *model, "--n-best", "2")
    _, text, score = best.split(" ||| ")
    line, _ = run(tmp_path, "ein Haus.\n\n", *model, "--scores")
    assert line == f"{score}\t{text}"


TEXTS = ["ein Haus.", "", "und ein Hund"]
PREFIXES = ["Maus eins", "", "Haus"]


@pytest.fixture
def prefixed(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the options for a translation of TEXTS with PREFIXES, in chunks of one batch of two lines."""
    monkeypatch.setattr("convs2s.commands.translate.CHUNK_BATCHES", 1)
    (tmp_path / "prefixes.txt").write_text("\n".join([*PREFIXES, ""]), encoding="utf-8")
    return ["--model", str(package), "--batch-sentences", "2", "--prefix", str(tmp_path / "prefixes.txt")]


def test_line_i_has_prefix_i_however_the_input_is_chunked(
    package: Path, tmp_path: Path, prefixed: list[str]
) -> None:
    """If a chunk lost count, its lines would get the prefixes of others."""
    n_best_lists = convs2s.load(package, "cpu").translate_n_best(TEXTS, prefixes=PREFIXES)
    assert run(tmp_path, "\n".join(TEXTS), *prefixed) == [best.text for [best] in n_best_lists]


def test_links_of_words_keep_the_order_of_the_input(
    package: Path, tmp_path: Path, prefixed: list[str]
) -> None:
    """Line i of the file links the words of line i, in the Pharaoh format, which other programs read."""
    run(tmp_path, "\n".join(TEXTS), *prefixed, "--alignment", str(tmp_path / "links.txt"))
    translator = convs2s.load(package, "cpu")
    n_best_lists = translator.translate_n_best(TEXTS, prefixes=PREFIXES)
    links = [" ".join(f"{i}-{j}" for i, j in translator.align(best)) for [best] in n_best_lists]
    assert (tmp_path / "links.txt").read_text(encoding="utf-8").split("\n") == [*links, ""]
    assert links[0]
    assert links[1] == ""
    assert links[2]


def test_asking_for_links_changes_no_translation(tmp_path: Path, prefixed: list[str]) -> None:
    """The search then keeps its attention, and must still find the same."""
    text = "\n".join(TEXTS)
    plain = run(tmp_path, text, *prefixed)
    assert run(tmp_path, text, *prefixed, "--alignment", str(tmp_path / "links.txt")) == plain


def test_repeated_model_options_add_up() -> None:
    """Other toolkits write an ensemble this way; keeping only the last model would go unnoticed."""
    for command in ("translate", "serve"):
        options = parser().parse_args([command, "--model", "a", "b", "--model", "c"])
        assert options.model == [Path("a"), Path("b"), Path("c")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "A sentence."], "error: A sentence. is not a folder. Expected a model folder"),
        (["--max-length-extra", "0"], "max_length_extra: "),
        (["--n-best", "3"], "expected n_best of at most beam_size, 2, found 3"),
        (["--device", "cuda:99"], "error: device 'cuda:99': "),
        *(
            (["--device", name], f"error: device {name!r}: it is unknown, or does not compute. Expected cpu,")
            for name in ("meta", "vulkan", "privateuseone", "mkldnn", "cpu:", "cpu:-1", "", "CPU")
        ),
        (["--threads", "100000"], "error: --threads: expected a number from 1 to 4,096, found 100000."),
        (["--processes", "5000"], "error: --processes: expected a number from 1 to 4,096, found 5000."),
        (["--beam-size", str(10**12)], "beam_size: expected less than or equal to 100000, found 10000000000"),
        (
            ["--batch-sentences", str(10**12)],
            "batch_sentences: expected less than or equal to 1000000, found",
        ),
        (
            ["--max-length-ratio", "1e308"],
            "max_length_ratio: expected less than or equal to 1000, found 1e+308",
        ),
        (["--max-length-ratio", "inf"], "max_length_ratio: expected a finite number, found inf"),
        (
            ["--max-length-extra", "1e308"],
            "max_length_extra: expected less than or equal to 1000000, found 1e+",
        ),
        (["--alpha", "nan"], "alpha: expected a finite number, found nan"),
        (["--sample", "--n-best", str(10**12)], "n_best: expected less than or equal to 100000, found"),
        (
            ["--sample", "--temperature", "1e-320"],
            "temperature: expected greater than or equal to 0.001, found",
        ),
        (["--sample", "--top-k", str(10**40)], "top_k: expected less than or equal to 1000000000000, found"),
        (["--sample", "--seed", str(10**40)], "seed: expected less than 18446744073709551616, found"),
        (["--output", "tests"], "error: tests is a folder. Expected a file, such as tests/out.txt."),
        (["--input", "missing.txt"], "error: missing.txt does not exist. Expected a text file"),
        (["--score", "README.md", "--alignment", "a"], "error: --score does not translate. Leave out"),
        (
            ["--sample", "--temperature", "0"],
            "temperature: expected greater than or equal to 0.001, found 0.0",
        ),
        (["--prefix", "-"], "error: Standard input cannot be both texts of --score or --prefix. Name a file"),
        (["--processes", "0"], "error: --processes: expected a number from 1 to 4,096, found 0."),
        (["--input", "latin1.txt"], "latin1.txt, line 2: byte 1 is 0xfc, which is not UTF-8. Convert it"),
        (["--input", "utf16.txt"], "for example: iconv -f utf-16 -t utf-8."),  # PowerShell's > writes it
        (["--input", "short.txt", "--prefix", "latin1.txt"], "latin1.txt, line 2: byte 1 is 0xfc"),
        (["--input", "short.txt", "--prefix", "long.txt"], "long.txt has 2 lines but short.txt has 1."),
        (["--input", "long.txt", "--score", "short.txt"], "short.txt has 1 lines but long.txt has 2."),
    ],
)
def test_errors_are_found_before_anything_is_translated(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    options: list[str], message: str,
) -> None:  # fmt: skip
    """A fault at the end of a file could be hours away, and the output appears only once it is complete.

    The exit status is 2, as for a wrong option. A later option overrides an earlier one; models add up.
    """
    for translating in ("translate_n_best", "score"):
        monkeypatch.setattr(f"convs2s.package.translator.Translator.{translating}", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    for name, text in {
        "latin1.txt": b"ein Haus\nf\xfcr\n", "utf16.txt": "ein Haus\n".encode("utf-16"), "README.md": b"",
        "short.txt": b"ein\n", "long.txt": b"ein\nHaus", "out.txt": b"old\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(text)
    command = ["translate", "--model", str(package), "--device", "cpu", "--output", "out.txt"]
    assert main([*command, *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("convs2s: error: ") and message in error
    assert (tmp_path / "out.txt").read_bytes() == b"old\n"
    assert len(list(tmp_path.iterdir())) == 7


def test_given_translations_are_scored(package: Path, tmp_path: Path) -> None:
    """Each line has log-likelihood and number of tokens; EOS alone is one token."""
    (tmp_path / "given.txt").write_text("Haus\nHaus und\n\n", encoding="utf-8")
    lines = run(tmp_path, "ein Haus\n" * 3, "--model", str(package), "--score", str(tmp_path / "given.txt"))
    exact = convs2s.load(package, "cpu").score(["ein Haus"] * 3, ["Haus", "Haus und", ""])
    assert lines == [f"{score.log_likelihood:.4f}\t{score.tokens}" for score in exact]
    assert lines[2].endswith("\t1")


def test_pipes_of_unequal_length_are_an_error(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only at its end does a pipe, such as a shell's `<(zcat a.gz)`, show how long it is."""
    pipes = os.pipe(), os.pipe()
    os.write(pipes[0][1], b"ein\n")
    for _, start in pipes:
        os.close(start)
    texts, scored = (f"/dev/fd/{end}" for end, _ in pipes)
    assert main(["translate", "--model", str(package), "--input", texts, "--score", scored]) == 2
    assert f"error: {scored} ended before {texts} did. Expected two files" in capsys.readouterr().err


def test_samples_depend_on_seed_and_line(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal lines get different samples; chunking must not change them, but another seed does."""
    options = ("--model", str(package), "--sample", "--temperature", "2")
    whole = run(tmp_path, "ein Haus\n" * 4, *options, "--seed", "1", "--top-k", "20")
    assert len(set(whole)) > 1
    assert run(tmp_path, "ein Haus\n" * 4, *options, "--seed", "2", "--top-k", "20") != whole
    monkeypatch.setattr("convs2s.commands.translate.CHUNK_BATCHES", 1)
    assert run(tmp_path, "ein Haus\n" * 4, *options, "--top-k", "20", "--batch-sentences", "1") == whole


def test_options_reach_the_library(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are PyTorch's, so that the command can leave cores to other programs."""
    load = mock.Mock(side_effect=ValueError)
    set_threads = mock.Mock()
    monkeypatch.setattr("convs2s.package.translator.load", load)
    monkeypatch.setattr("torch.set_num_threads", set_threads)
    options = ["--threads", "3", "--processes", "2", "--max-length-ratio", "0.5", "--max-length-extra", "9"]
    assert main(["translate", "--model", str(package), *options]) == 2
    set_threads.assert_called_once_with(3)
    expected = {"processes": 2, "max_length_ratio": 0.5, "max_length_extra": 9.0}
    assert load.call_args.kwargs.items() >= expected.items()


# Slow to import, and not needed for translation.
FORBIDDEN = {
    "convs2s.config.params", "convs2s.fairseq", "convs2s.score", "convs2s.train", "dvc", "matplotlib",
    "pandas", "pipelines", "prefect", "sacrebleu", "sacremoses",
    "sympy", "torch._dynamo", "torch._inductor",
}  # fmt: skip


@pytest.fixture(scope="module")
def with_closed_pipe(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    """Translate into a pipe that nobody reads; return the status, and what Python lists of its imports.

    The model does without Moses' rules, the only ones that need sacremoses.
    """
    package = write_small_package(tmp_path_factory.mktemp("package"))
    words = dict.fromkeys(("normalize_punctuation", "remove_nonprinting"), False)
    edit_settings(package, "tokenizer.json", "tokenize", escape=True, tokenizer="none", **words)
    command = [sys.executable, "-X", "importtime", "-m", "convs2s.cli", "translate"]
    with subprocess.Popen(
        [*command, "--model", str(package), "--device", "cpu"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, error = process.communicate("ein Haus\n")
    return process.returncode, error


def test_a_closed_pipe_is_not_an_error(with_closed_pipe: tuple[int, str]) -> None:
    """`convs2s translate | head -1` must end quietly: with the status of SIGPIPE, and nothing printed."""
    status, error = with_closed_pipe
    assert status == 141
    assert [line for line in error.splitlines() if not line.startswith("import time:")] == []


def test_only_what_is_needed_is_imported(with_closed_pipe: tuple[int, str]) -> None:
    """Start-up takes most of the time for a single sentence."""
    _, error = with_closed_pipe
    imported = {line.split("|")[2].strip() for line in error.splitlines()}
    assert {"torch", "convs2s.package.translator"} <= imported
    assert not imported & FORBIDDEN


def test_control_characters_of_a_model_reach_no_translation(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whoever made the vocabulary could otherwise control the terminal."""
    package = write_small_package(tmp_path)
    entries = (package / "target.tsv").read_text(encoding="utf-8").splitlines()
    text = "".join(entry.replace("\t", "\x1b[2J\x9b2J\t") + "\n" for entry in entries)
    (package / "target.tsv").write_text(text, encoding="utf-8")
    seal(package)
    source = tmp_path / "source.txt"
    source.write_text("Das ist ein Haus.\n", encoding="utf-8")
    command = ["translate", "--model", str(package), "--device", "cpu", "--input", str(source)]
    for options in ([], ["--n-best", "2"], ["--scores"]):
        assert main([*command, *options]) == 0
        shown = "".join(capfd.readouterr())
        assert "[2J" in shown
        assert not set(shown) & {"\x1b", "\x9b"}
