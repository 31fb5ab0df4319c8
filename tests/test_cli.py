"""The command `convs2s` as a whole: its list of commands, and how errors are reported."""

import importlib
import os
import re
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
import torch

import convs2s
from convs2s.cli import main
from tests.docs import pages
from tests.docs.commands import check as check_command
from tests.golden.interfaces import command_parsers

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")


def test_help_names_every_command_and_loads_nothing_large() -> None:
    """PyTorch takes seconds to import; help must not."""
    program = (
        "import sys\nfrom convs2s.cli import main\n"
        "try:\n    main(['--help'])\n"
        "finally:\n    print({'torch', 'pydantic', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8")
    assert [name for name in command_parsers() if f"\n    {name}" not in done.stdout] == []
    assert done.stdout.endswith("set()\n")


def test_without_a_command_help_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that forgot the command must not go on as if it had succeeded."""
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert main([]) == 2
    assert capsys.readouterr().err == text


def test_the_version_is_that_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    """Users quote it in bug reports."""
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"convs2s {convs2s.__version__}\n"


@pytest.mark.parametrize("name", command_parsers())
def test_help_has_defaults_and_an_example(name: str) -> None:
    """Each option that takes a value states its default, and each example works as written."""
    command = command_parsers()[name]
    for action in command._actions:
        if action.option_strings and not action.required and action.nargs != 0:
            text = command._get_formatter()._expand_help(action)
            assert "(default: " in text, f"{name} {action.option_strings[0]}: {text}"
            assert "None" not in text
    _, *lines = str(command.epilog).splitlines()
    assert lines
    for line in lines:
        check_command(next(iter(words for words in pages.commands(line) if words[0] == "convs2s")))
        assert line in command.format_help().splitlines()


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch, command: str = "translate.run") -> None:
    """Make a command fail."""
    monkeypatch.setattr(f"convs2s.commands.{command}", mock.Mock(side_effect=error))


def no_cpu_memory() -> Exception:
    """Return PyTorch's error for exhausted CPU memory, caused by a request for more than any machine has."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 55, dtype=torch.uint8)
    return caught.value


OUT_OF_MEMORY = [RuntimeError("CUDA out of memory."), MemoryError(), no_cpu_memory()]


@pytest.mark.parametrize("error", OUT_OF_MEMORY)
def test_out_of_memory_says_what_to_do(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch raises a RuntimeError for it, which would look like a bug of ours."""
    raising(error, monkeypatch)
    assert main(["translate", "--model", "x"]) == 2
    assert re.fullmatch(
        r"convs2s: error: out of memory( \(tried to allocate \d+ bytes\))?\. Lower --batch-sentences or "
        r"--beam-size\.\n",
        capsys.readouterr().err,
    )


@pytest.mark.parametrize("error", OUT_OF_MEMORY)
def test_out_of_memory_without_batches_needs_more_memory(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command without batches has no option that would help."""
    raising(error, monkeypatch, "folders.run_attention")
    assert main(["attention", "a", "--model", "x", "--out", "y.png"]) == 2
    assert capsys.readouterr().err.endswith(". Use a machine with more memory.\n")


def test_an_error_is_one_message_without_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages quote files, which may come from strangers and must not control the terminal."""
    raising(ValueError("found \x1b[2J\nand \x9b2J"), monkeypatch)
    assert main(["translate", "--model", "x"]) == 2
    assert capsys.readouterr().err == "convs2s: error: found \ufffd[2J\nand \ufffd2J\n"


def test_notes_follow_an_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are details, such as a report's rows; they may quote a file, too."""
    error = ValueError("found")
    error.add_note("  \tin \x07")
    error.add_note("  second")
    raising(error, monkeypatch)
    assert main(["translate", "--model", "x"]) == 2
    assert capsys.readouterr().err == "convs2s: error: found\n  \tin \ufffd\n  second\n"


def test_a_variable_shows_the_traceback_of_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug report needs it, even if we took the bug for a user's error."""
    raising(ValueError("found"), monkeypatch)
    monkeypatch.setenv("CONVS2S_DEBUG", "1")
    with pytest.raises(ValueError, match="found"):
        main(["translate", "--model", "x"])


def test_a_bug_is_seen_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """No user can act on it, so it is not made a message."""
    raising(RuntimeError("a bug of ours"), monkeypatch)
    with pytest.raises(RuntimeError, match="a bug of ours"):
        main(["translate", "--model", "x"])


def test_ctrl_c_has_the_exit_status_of_shells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts see the status that shells themselves give to a command that Ctrl-C ended."""
    raising(KeyboardInterrupt(), monkeypatch)
    assert main(["translate", "--model", "x"]) == 130


def test_a_warning_is_one_line_without_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may quote a file, too; users need no place in the code."""
    warn = partial(warnings.warn, "a \x1b[2J\nb", stacklevel=1)
    monkeypatch.setattr("convs2s.commands.translate.run", lambda _: warn())
    assert main(["translate", "--model", "x"]) == 0
    assert capsys.readouterr().err == "convs2s: warning: a \ufffd[2J b\n"


@pytest.mark.parametrize(("before", "after"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_that_wait_sleep_unless_told_otherwise(
    before: str | None, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spinning threads are ten times slower on a busy machine, so any import of convs2s sets the policy."""
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, before or "")  # so that the value is restored after the test
        monkeypatch.delenv(name)
    if before:
        monkeypatch.setenv("OMP_WAIT_POLICY", before)
    importlib.reload(convs2s)
    assert os.environ["OMP_WAIT_POLICY"] == after
    assert os.environ.get("GOMP_SPINCOUNT") == ("20000" if before is None else None)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists what a process asked for")
@pytest.mark.parametrize(("choice", "expected"), [(None, HUGE_PAGES.is_dir()), ("0", False)])
def test_large_tensors_ask_for_huge_pages(choice: str | None, expected: bool) -> None:
    """The kernel then gives them where it has them; a choice of the user's stays."""
    code = "import convs2s, torch; x = torch.ones(2**24); print(open('/proc/self/smaps').read())"
    env = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    if choice is not None:
        env["THP_MEM_ALLOC_ENABLE"] = choice
    command = [sys.executable, "-c", code]
    smaps = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert any("hg" in line.split() for line in smaps.splitlines() if line.startswith("VmFlags")) == expected
