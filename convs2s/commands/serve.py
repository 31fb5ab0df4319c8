"""`convs2s serve`: model folders -> an HTTP API and a page to try them."""

import argparse
import contextlib
import os
import socket
import sys
from pathlib import Path
from typing import Any

from convs2s.base.parallel import MOST_PROCESSES
from convs2s.commands.shared import (
    CAPITALS,
    COUNT,
    FILE,
    KEEP_LITERALS,
    MODELS,
    MOST_CHARACTERS,
    MOST_LINES,
    PROCESSOR,
    YES_OR_NO,
    Option,
    add_command,
    add_options,
    check_range,
    pause_garbage_collection,
    require_packages,
)

LOOPBACK = ("127.0.0.1", "::1", "localhost")


OPTIONS = (
    Option("--model", MODELS, "model folders; several for the same language pair form an ensemble"),
    Option(
        "--host", {"default": "127.0.0.1"}, "address to listen on; other machines cannot reach the default"
    ),
    Option("--port", {**COUNT, "default": 5000}, "port to listen on; 0 picks a free port"),
    Option(
        "--api-key-file",
        FILE,
        "API keys, one per line; each request must send one of them (default: no key needed)",
    ),
    Option("--beam-size", COUNT, "hypotheses kept per line (default: the model folder's)"),
    Option("--replace", YES_OR_NO, "replace unknown words by attention (default: the model folder's)"),
    Option(
        "--split-sentences",
        YES_OR_NO,
        "translate each sentence of a line by itself (default: yes, unless the model folder says no)",
    ),
    KEEP_LITERALS,
    CAPITALS,
    *PROCESSOR,
    Option("--max-characters", {**COUNT, "default": 10_000}, "longest text in a request"),
    Option("--max-lines", {**COUNT, "default": 200}, "most lines in a request"),
    Option("--batch-lines", {**COUNT, "default": 64}, "lines translated at once"),
    Option(
        "--workers",
        {**COUNT, "default": 1},
        "processes that serve, on a CPU; several share the memory of the models, and have one thread each "
        "unless --threads says otherwise (default: 1)",
    ),
)


def add(commands: Any) -> None:
    """Add the command's parser."""
    command = add_command(
        commands,
        "serve",
        run,
        "serve models over HTTP, with a page to try them",
        "Serve LibreTranslate's API and a page to try models. Needs: pip install 'convs2s[serve]'.",
        "convs2s serve --model data/models/1",
        "convs2s serve --model en-de de-en --port 8000 --api-key-file keys.txt --host 0.0.0.0",
    )
    add_options(command, OPTIONS)


def run(options: argparse.Namespace) -> None:
    """Load the models and serve them until interrupted; warn if anyone can use the server."""
    require_packages("serve", "fastapi", "uvicorn")
    check_range(options, 0, 2**16 - 1, "port")
    check_range(options, 1, MOST_CHARACTERS, "max_characters")
    check_range(options, 1, MOST_LINES, "max_lines", "batch_lines")
    check_range(options, 1, MOST_PROCESSES, "threads", "workers")
    key_file: Path | None = options.api_key_file
    keys = tuple(key_file.read_text(encoding="utf-8").split()) if key_file else ()
    if key_file and not keys:
        raise ValueError(f"{key_file} is empty; expected an API key on each line.")
    is_local = options.host in LOOPBACK
    if not is_local and not keys:
        print(
            f"convs2s: warning: anyone who can reach {options.host} can use this server; require keys with "
            "--api-key-file.",
            file=sys.stderr,
        )
    # These imports take seconds; --help must not.
    import uvicorn  # noqa: PLC0415

    from convs2s.serve.app import create_app  # noqa: PLC0415
    from convs2s.serve.batching import Batcher  # noqa: PLC0415
    from convs2s.serve.endings import UVICORN, Server  # noqa: PLC0415
    from convs2s.serve.pairs import load_pairs  # noqa: PLC0415
    from convs2s.serve.requests import RequestReader  # noqa: PLC0415
    from convs2s.serve.workers import Supervisor, bind, check_workers  # noqa: PLC0415

    with pause_garbage_collection():
        pairs = load_pairs(
            options.model,
            options.device,
            beam_size=options.beam_size,
            replace=options.replace,
            split_sentences=options.split_sentences,
            keep_literals=options.keep_literals,
            capitals=options.capitals,
        )
    if options.workers > 1:
        check_workers(pairs, options.workers)
    for pair in pairs:
        print(f"convs2s: {pair}: {pair.translator.words.precision}", file=sys.stderr)
    # By default a thread that reads or writes a page may keep all others waiting for 5 ms at a time.
    sys.setswitchinterval(0.0005)
    threads = 1 if options.threads is None and options.workers > 1 else options.threads
    batcher = Batcher(options.batch_lines, threads)
    reader = RequestReader(keys, options.max_characters, options.max_lines)
    names = ["localhost", "127.0.0.1", "[::1]"] if is_local and not keys else ["*"]
    app = create_app(pairs, reader, batcher, names)
    config = uvicorn.Config(app, host=options.host, port=options.port, **UVICORN)

    def serve(sockets: list[socket.socket] | None = None) -> None:
        """Serve until interrupted, on these sockets or else on one of its own."""
        with contextlib.suppress(KeyboardInterrupt):  # with which uvicorn ends after Ctrl-C
            Server(config).run(sockets)
        if batcher.is_working:  # on lines of requests that have been cut off; Python would wait for it
            sys.stderr.flush()
            os._exit(0)

    if options.workers == 1:
        serve()
    else:
        Supervisor(serve, bind(config), options.workers).run()
