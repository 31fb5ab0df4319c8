"""Training on several machines: how they meet, what is refused, and what happens when one is lost."""

import dataclasses
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from convs2s.train import head, node
from convs2s.train.head import Head, LostNodeError, rank, train_on_nodes
from convs2s.train.node import FAILED, INTERRUPTED, LOST, Node, describe_this
from tests.train.tiny import tiny_params

SLEEP = "sh -c 'sleep 60'"  # a launcher that ignores the command after it
Words = dict[int, tuple[int, str]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "POLL", 0.02)
    for name in ("GATHERING", "SILENCE", "GRACE"):
        monkeypatch.setattr(head, name, 0.2)


def start(folder: Path, nodes: list[Node], words: Words | None = None, **changes: Any) -> Head:
    """Return a head to which these nodes have come and said how they ended."""
    wanted: dict[str, Any] = {"nodes": 2, "launcher": SLEEP, "rendezvous": "localhost"}
    params = tiny_params(folder, **wanted | changes)
    found = Head(params.train, params.run)
    for i, one in enumerate(nodes):
        found.store.set(f"node/{i}", json.dumps(dataclasses.asdict(one)))
    for i, word in (words or {}).items():
        found.store.set(f"word/{i}", json.dumps(word))
    found.store.add("arrivals", len(nodes))
    return found


@pytest.fixture(scope="module")
def pair() -> list[Node]:
    """Two nodes that fit each other, that of this folder second."""
    this = describe_this()
    return [dataclasses.replace(this, host="b", folder="/b"), this]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"code": "0123"}, r"expected code of convs2s \w+, as on .*, found 0123 on b in /b\."),
        (
            {"torch": "1.0"},
            r"expected version of PyTorch [2-9].*, as on .*, found 1\.0 on b in /b",
        ),
        ({"gpus": 8}, r"expected number of GPUs \d+, as on .*, found 8 on b in /b"),
    ],
)
def test_a_node_that_does_not_fit_is_refused(
    change: dict[str, Any], message: str, pair: list[Node], tmp_path: Path
) -> None:
    """They would train different models, or wait for each other forever."""
    with pytest.raises(ValueError, match=message):
        start(tmp_path, [dataclasses.replace(pair[0], **change), pair[1]]).run("", [], "")


def test_the_node_of_this_folder_writes(pair: list[Node]) -> None:
    """Its outputs are those that the stage records, whichever node comes first."""
    assert rank(pair) == [1, 0]
    assert rank(pair[::-1]) == [0, 1]


@pytest.mark.parametrize(
    ("count", "changes", "error", "message"),
    [
        (1, {}, TimeoutError, r"expected 2 nodes at localhost:\d+, found b in /b in 0\.2 s\."),
        (1, {"launcher": "false"}, LostNodeError, "found b in /b, then it ended with status 1; messages"),
        (0, {"launcher": "no-such-command -n 2"}, OSError, "run.launcher: no-such-command -n 2 cannot be"),
        (
            0,
            {"rendezvous": "no.such.host.invalid"},
            OSError,
            "at no.such.host.invalid:any port",
        ),
    ],
)
def test_nodes_that_do_not_meet_are_an_error(
    count: int,
    changes: dict[str, Any],
    error: type[Exception],
    message: str,
    pair: list[Node],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says who has come, and how long it waited."""
    monkeypatch.setattr(node, "MEETING", 1)
    with pytest.raises(error, match=message):
        start(tmp_path, pair[:count], **changes).run("", [], "")
    if error is TimeoutError:
        assert "for 1 of 2 nodes, up to 0.2 s; found b in /b." in capfd.readouterr().err


def test_a_node_whose_head_does_not_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the address, after seconds."""
    monkeypatch.setattr(node, "MEETING", 1)
    with pytest.raises(ConnectionError, match=r"expected the head .* at localhost:9, found none in 1 s"):
        node.take_part("localhost:9")


def test_a_node_saves_and_ends_when_its_head_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the signal before a limit of time; until then it gives signs of life."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *words: sent.append(words))
    monkeypatch.setattr(node, "POLL", 0.02)
    heads = [node.connect("localhost:0", is_head=True)]
    follower = threading.Thread(target=node.follow_head, args=(f"localhost:{heads[0].port}", 0))
    follower.start()
    while heads[0].add("alive/0", 0) < 2:
        time.sleep(0.02)
    assert not sent
    heads.clear()
    follower.join(20)
    assert sent == [(os.getpid(), signal.SIGTERM)]


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({0: (LOST, "lost"), 1: (FAILED, "disk full")}, ChildProcessError, "Node .*: disk full"),
        ({0: (FAILED, "NaN")}, ChildProcessError, "Node b in /b: NaN"),
        ({1: (LOST, "lost")}, LostNodeError, "Node b in /b: It was killed, or cannot be reached"),
        ({0: (INTERRUPTED, ""), 1: (INTERRUPTED, "")}, KeyboardInterrupt, "^$"),
        ({}, LostNodeError, "Node b in /b: It was killed, or cannot be reached"),
    ],
    ids=["another has failed", "the other has no word", "lost", "interrupted", "silent"],
)
def test_the_end_of_a_node_ends_all(
    words: Words, error: type[Exception], message: str, pair: list[Node], tmp_path: Path
) -> None:
    """The cause is named, not its effect on others; only a lost node is reason to start again."""
    started = start(tmp_path, pair, words)
    with pytest.raises(error, match=message) as raised:
        started.run("", [], "")
    assert type(raised.value) is error
    assert started.store.check(["end"])


def test_a_launcher_that_ends_before_its_nodes_is_named(pair: list[Node], tmp_path: Path) -> None:
    """Somebody may have killed it."""
    with pytest.raises(LostNodeError, match=r"run\.launcher ended with status 0 before b in /b, "):
        start(tmp_path, pair, launcher="true").run("", [], "")


def test_a_lost_node_is_reason_to_start_again_as_often_as_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then it is an error."""
    runs: list[str] = []

    def run(*arguments: object) -> None:
        runs.append("run")
        raise LostNodeError("Node b: killed.")

    monkeypatch.setattr(Head, "run", run)
    params = tiny_params(tmp_path, nodes=2, launcher=SLEEP, rendezvous="localhost", restarts=2)
    with pytest.raises(LostNodeError, match="Node b: killed"):
        train_on_nodes("", [], params.train, params.run, tmp_path / "work", "")
    assert len(runs) == 3
    assert "restarts left after this: 1" in capsys.readouterr().err


def test_a_node_too_many_says_so(tmp_path: Path, pair: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher and train.nodes do not fit."""
    started = start(tmp_path, pair)
    started.store.set("plan", json.dumps({"ranks": [0, 1]}))
    monkeypatch.setattr(node, "follow_head", lambda *_: None)
    with pytest.raises(SystemExit):
        node.take_part(started.address)
    assert started.word(2) == (FAILED, "Expected 2 nodes, but run.launcher starts more.")
