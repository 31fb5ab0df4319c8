"""The command `convs2s translate` as a user runs it."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import convs2s
from convs2s.cli import main, parser
from convs2s.decode.load_words import load_words
from tests.package.small_package import edit_settings, write_small_package


def run(folder: Path, text: str, *options: str) -> list[str]:
    """Translate from file to file, in this process to save time; return the lines written."""
    (folder / "in.txt").write_text(text, encoding="utf-8", newline="\n")
    files = ("--input", str(folder / "in.txt"), "--output", str(folder / "out.txt"))
    assert main(["translate", *options, "--device", "cpu", *files]) == 0
    out = (folder / "out.txt").read_bytes().decode("utf-8")
    assert out.endswith("\n") or not out
    return out.split("\n")[:-1]


def test_standard_input_gives_a_line_for_each_line(
    package: Path,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    r"""Files do the same; empty lines stay empty, \r\n ends a line, and the last line needs no line end."""
    text = "ein Haus.\n\nein\u2028Hund\r\nund"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["translate", "--model", str(package), "--device", "cpu"]) == 0
    out, error = capfdbinary.readouterr()
    assert error == b""
    lines = out.decode("utf-8").split("\n")
    assert len(lines) == 5
    assert lines[1] == lines[4] == ""
    assert b"\r" not in out
    assert run(tmp_path, text, "--model", str(package)) == lines[:-1]
    assert run(tmp_path, "", "--model", str(package)) == []


def test_an_n_best_list_has_the_format_of_moses(package: Path, tmp_path: Path) -> None:
    """Number from 0, text, score; best first, empty lines included. --scores alone puts the score first."""
    model = ("--model", str(package))
    plain = run(tmp_path, "ein Haus.\n\n", *model)
    rows = [line.split(" ||| ") for line in run(tmp_path, "ein Haus.\n\n", *model, "--n-best", "2")]
    assert [row[0] for row in rows] == ["0", "0", "1"]
    assert float(rows[0][2]) > float(rows[1][2])
    assert [rows[0][1], rows[2][1]] == plain
    [[score, text], _] = [line.split("\t") for line in run(tmp_path, "ein Haus.\n\n", *model, "--scores")]
    assert [text, score] == rows[0][1:]


def test_links_of_words_are_written_in_the_format_of_pharaoh(package: Path, tmp_path: Path) -> None:
    """A line of pairs for each line of the input, in order; the translations stay the same."""
    texts, prefixes = ["ein Haus.", "", "und ein Hund"], ["Maus eins", "", "Haus"]
    (tmp_path / "prefixes.txt").write_text("\n".join([*prefixes, ""]), encoding="utf-8")
    options = ("--model", str(package), "--prefix", str(tmp_path / "prefixes.txt"))
    plain = run(tmp_path, "\n".join(texts), *options)
    assert run(tmp_path, "\n".join(texts), *options, "--alignment", str(tmp_path / "links.txt")) == plain
    translator = convs2s.load(package, "cpu")
    found = translator.translate_n_best(texts, prefixes=prefixes)
    expected = [" ".join(f"{i}-{j}" for i, j in translator.align(best)) for [best] in found]
    assert (tmp_path / "links.txt").read_text(encoding="utf-8").split("\n") == [*expected, ""]
    assert expected[0] and expected[2] and not expected[1]


def test_a_length_limit_reaches_the_search(tmp_path: Path) -> None:
    """A model that would never stop ends at the option's limit, not its folder's; tokens lower the score."""
    limits: dict[str, object] = {"min_length": 20, "max_length_ratio": 0.0, "max_length_extra": 20}
    folder = edit_settings(write_small_package(tmp_path), "translate.json", "translate", **limits)
    options = ("--model", str(folder), "--scores", "--beam-size", "1", "--alpha", "0")

    def score(*more: str) -> float:
        [line] = run(tmp_path, "ein Haus\n", *options, *more)
        return float(line.split("\t")[0])

    scores = [score("--max-length-extra", extra) for extra in ("1", "2", "19")]
    assert [*scores, score()] == sorted([*scores, score()], reverse=True)
    assert len({*scores, score()}) == 4
    assert scores[2] < score("--max-length-ratio", "0.5", "--max-length-extra", "1") < scores[0]


def test_repeated_model_options_add_up() -> None:
    """Other toolkits write an ensemble this way; keeping only the last model would go unnoticed."""
    for command in ("translate", "serve"):
        options = parser().parse_args([command, "--model", "a", "b", "--model", "c"])
        assert options.model == [Path("a"), Path("b"), Path("c")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"ein Haus\nf\xfcr\n", "line 2: byte 1 is 0xfc, which is not UTF-8. Convert the text first, for "),
        ("ein Haus\n".encode("utf-16"), "for example: iconv -f utf-16 -t utf-8."),  # PowerShell's > writes it
    ],
)
def test_text_that_is_not_utf8_is_named_by_line(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes, message: str
) -> None:
    """The error is one line on standard error, and the output replaces the old file only when complete."""
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(text)
    out.write_bytes(b"old\n")
    command = ["translate", "--model", str(package), "--device", "cpu"]
    assert main([*command, "--input", str(source), "--output", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"convs2s: error: {source}, line ") and message in error
    assert error.count("\n") == 1
    assert out.read_bytes() == b"old\n"
    assert sorted(tmp_path.iterdir()) == [source, out]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "nowhere"], "error: --model nowhere is not a folder. Expected a model folder"),
        (["--model", "A sentence."], "data/models/1; text to translate goes after --input"),
        (["--model", "hf:none"], "error: expected hf:OWNER/NAME"),
        (["--beam-size", "0"], "error: --beam-size: "),
        (["--max-length-extra", "0"], "error: --max-length-extra: "),
        (["--n-best", "3"], "error: expected --n-best of at most --beam-size, 2, found 3"),
        (["--device", "cuda:99"], "error: device 'cuda:99' does not exist"),
        (["--output", "tests"], "error: --output tests is a folder. Expected a file, such as tests/out.txt."),
        (["--alignment", "tests"], "error: --alignment tests is a folder. Expected a file"),
        (["--alignment", "a", "--output", "./a"], "error: --alignment a is also --output. Expected a file"),
        (["--alignment", "none", "--input", "none"], "error: --alignment none is also --input."),
        (["--input", "missing.txt"], "error: --input missing.txt does not exist. Expected UTF-8 text"),
        (["--score", "tests"], "error: --score tests is a folder. Expected UTF-8 text"),
        (["--threads", "0"], "error: --threads: expected 1 or more, found 0."),
        (["--processes", "2", "--threads", "2"], "error: --threads with --processes would do nothing"),
        (["--seed", "0"], "error: --seed without --sample would do nothing. Leave out one or the other."),
        (["--sample", "--beam-size", "2"], "error: --beam-size with --sample would do nothing"),
        (["--score", "README.md", "--scores"], "error: --scores with --score would do nothing"),
        (["--score", "README.md", "--alignment", "a"], "error: --alignment with --score would do nothing"),
        (["--sample", "--temperature", "0"], "error: sampling: temperature: "),
    ],
)
def test_errors_are_one_line(
    package: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    """The exit status is 2, as for a wrong option. A later option overrides an earlier one; models add up."""
    assert main(["translate", "--model", str(package), "--device", "cpu", *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_given_translations_are_scored(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line has log-likelihood and number of tokens; EOS alone is one token.

    A file that is not as long as the input would be matched with the wrong sentences.
    """
    (tmp_path / "given.txt").write_text("Haus\nHaus und\n\n", encoding="utf-8")
    lines = run(tmp_path, "ein Haus\n" * 3, "--model", str(package), "--score", str(tmp_path / "given.txt"))
    rows = [line.split("\t") for line in lines]
    exact = convs2s.load(package, "cpu").score(["ein Haus"] * 3, ["Haus", "Haus und", ""])
    assert rows == [[f"{one.log_likelihood:.4f}", str(one.tokens)] for one in exact]
    assert rows[2][1] == "1"
    for lines_of_input, found in (2, "more"), (4, "fewer"):
        (tmp_path / "in.txt").write_text("ein Haus\n" * lines_of_input, encoding="utf-8")
        files = ["--input", str(tmp_path / "in.txt"), "--score", str(tmp_path / "given.txt")]
        assert main(["translate", "--model", str(package), "--device", "cpu", *files]) == 2
        message = f"expected a line for each line of the input, found {found}."
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("broken", ["in.txt", "given.txt"])
def test_a_fault_at_the_end_of_a_file_is_found_at_once(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """It could be hours away, and the output appears only once it is complete."""
    monkeypatch.setattr("convs2s.commands.translate_files.CHUNK_BATCHES", 1)
    monkeypatch.setattr("convs2s.commands.translate.answer", lambda *_: pytest.fail("it translates"))
    for name in ("in.txt", "given.txt"):
        (tmp_path / name).write_bytes(b"ein Haus\n" * 4 + b"caf\xe9\n" * (name == broken))
    command = ["translate", "--model", str(package), "--device", "cpu", "--batch-sentences", "1"]
    given = ["--prefix", str(tmp_path / "given.txt")] * (broken == "given.txt")
    assert main([*command, "--input", str(tmp_path / "in.txt"), *given]) == 2


def test_translations_begin_with_their_prefixes(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line i of one file belongs to line i of the other, however the input is chunked."""
    monkeypatch.setattr("convs2s.commands.translate_files.CHUNK_BATCHES", 1)
    (tmp_path / "prefixes.txt").write_text("Haus und\n\naus\n", encoding="utf-8")
    options = ("--model", str(package), "--batch-sentences", "2")
    free = run(tmp_path, "ein Haus\n" * 3, *options)
    begun = run(tmp_path, "ein Haus\n" * 3, *options, "--prefix", str(tmp_path / "prefixes.txt"))
    assert begun[0].startswith("Haus und")
    assert begun[1] == free[1]
    assert begun[2].startswith("aus")


def test_samples_depend_on_seed_and_line(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal lines get different samples; chunking must not change them, but another seed does."""
    options = ("--model", str(package), "--sample", "--temperature", "2")
    whole = run(tmp_path, "ein Haus\n" * 4, *options, "--seed", "1", "--top-k", "20")
    assert len(set(whole)) > 1
    assert run(tmp_path, "ein Haus\n" * 4, *options, "--seed", "2", "--top-k", "20") != whole
    assert len(set(run(tmp_path, "ein Haus\n" * 4, *options, "--top-k", "1"))) == 1
    monkeypatch.setattr("convs2s.commands.translate_files.CHUNK_BATCHES", 1)
    assert run(tmp_path, "ein Haus\n" * 4, *options, "--top-k", "20", "--batch-sentences", "1") == whole
    assert len(run(tmp_path, "ein Haus\n", *options, "--n-best", "3")) == 3


def test_options_of_the_machine_reach_the_library(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads are PyTorch's, so that the command can leave cores to other programs."""
    seen: list[int] = []
    monkeypatch.setattr("torch.set_num_threads", seen.append)
    run(tmp_path, "ein\n", "--model", str(package), "--threads", "3")

    def load_in_one_process(*given: Any) -> Any:
        seen.append(given[5])
        return load_words(*given[:5])

    monkeypatch.setattr("convs2s.package.translator.load_words", load_in_one_process)
    run(tmp_path, "ein\n", "--model", str(package), "--processes", "2")
    assert seen == [3, 2]


def test_a_slow_precision_is_warned_of(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without hardware for it, bfloat16 takes many times as long; what is chosen by itself says nothing."""
    monkeypatch.setattr("convs2s.model.precision.find_bfloat16", lambda _: (False, "it is a toy"))
    run(tmp_path, "ein\n", "--model", str(package), "--precision", "auto")
    assert capsys.readouterr().err == ""
    run(tmp_path, "ein\n", "--model", str(package), "--precision", "bfloat16")
    warning = "convs2s: warning: products in bfloat16, about 20 times slower than float32, as it is a toy: "
    assert warning in capsys.readouterr().err


# Slow to import, and not needed for translation.
FORBIDDEN = {
    "convs2s.config.params", "convs2s.exchange", "convs2s.score", "convs2s.train", "dvc", "matplotlib",
    "pandas", "pipelines", "prefect", "sacrebleu", "sacremoses",
    "sympy", "torch._dynamo", "torch._inductor",
}  # fmt: skip


def test_a_closed_pipe_is_not_an_error_and_only_what_is_needed_was_imported(tmp_path: Path) -> None:
    """`convs2s translate | head -1` must end quietly; here Python also lists its imports.

    Start-up takes most of the time for a single sentence; only models with Moses' words need sacremoses.
    """
    words = dict.fromkeys(("normalize_punctuation", "remove_nonprinting"), False)
    package = write_small_package(tmp_path)
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
    assert process.returncode == 141
    rows = [line.split("|") for line in error.splitlines()]
    assert all(row[0].startswith("import time:") for row in rows), error
    imported = {row[2].strip() for row in rows}
    assert {"torch", "convs2s.package.translator"} <= imported
    assert not imported & FORBIDDEN
