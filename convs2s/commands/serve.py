"""`convs2s serve`: model folders -> an HTTP API and a page to try them."""

import argparse
import sys
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from convs2s.commands.shared import add_command, add_processor, check_positive, pause_garbage_collection

LOOPBACK = ("127.0.0.1", "::1", "localhost")
EXTRA = ("fastapi", "uvicorn", "prometheus_client")


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
    add = command.add_argument
    text = "model folders; several for the same language pair form an ensemble"
    add("--model", required=True, action="extend", nargs="+", type=Path, metavar="DIR", help=text)
    add("--host", default="127.0.0.1", help="address to listen on; other machines cannot reach the default")
    add("--port", type=int, default=5000, metavar="N", help="port to listen on; 0 picks a free port")
    text = "API keys, one per line; each request must send one of them (default: no key needed)"
    add("--api-key-file", type=Path, metavar="FILE", help=text)
    add("--beam-size", type=int, metavar="N", help="hypotheses kept per line (default: the model folder's)")
    text = "replace unknown words by attention (default: the model folder's)"
    add("--replace", action=argparse.BooleanOptionalAction, help=text)
    add_processor(add)
    limit = command.add_argument_group("limits; requests beyond them are refused").add_argument
    limit("--max-characters", type=int, default=10_000, metavar="N", help="characters per request")
    limit("--max-lines", type=int, default=200, metavar="N", help="lines per request")
    limit("--max-waiting", type=int, default=1000, metavar="N", help="waiting lines, from all clients")
    limit("--max-waiting-per-client", type=int, default=400, metavar="N", help="waiting lines, per address")
    limit("--batch-lines", type=int, default=64, metavar="N", help="lines translated at once")


def run(options: argparse.Namespace) -> None:
    """Load the models and serve them until interrupted."""
    check(options)
    # These imports take seconds; --help must not.
    from convs2s.serve.app import create_app  # noqa: PLC0415
    from convs2s.serve.pairs import load_pairs  # noqa: PLC0415
    from convs2s.serve.requests import Limits  # noqa: PLC0415
    from convs2s.serve.server import listen, read_keys, serve  # noqa: PLC0415

    keys = read_keys(options.api_key_file) if options.api_key_file else ()
    with listen(options.host, options.port) as listening:
        with pause_garbage_collection():
            pairs = load_pairs(options.model, options.device, options.beam_size, options.replace)
        for pair in pairs:
            name = f"{pair.source}-{pair.target}"
            print(f"convs2s: {name}: {pair.translator.words.precision}", file=sys.stderr)
        limits = Limits(
            characters=options.max_characters,
            lines=options.max_lines,
            waiting=options.max_waiting,
            waiting_per_client=options.max_waiting_per_client,
            batch_lines=options.batch_lines,
        )
        host = f"[{options.host}]" if ":" in options.host else options.host
        is_local = ip_address(listening.getsockname()[0]).is_loopback
        names = {"localhost", "127.0.0.1", "[::1]", host.lower()} if is_local and not keys else set()
        print(f"{pairs}: http://{host}:{listening.getsockname()[1]}/ (stop with Ctrl-C)", flush=True)
        serve(create_app(pairs, limits, keys, options.threads, names), listening)


def check(options: argparse.Namespace) -> None:
    """Check the options before any slow work; warn if anyone can use the server."""
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        raise ValueError(f"serve needs {', '.join(missing)}. Install it: pip install 'convs2s[serve]'.")
    limits = "max_characters", "max_lines", "max_waiting", "max_waiting_per_client", "batch_lines"
    check_positive(options, *limits, "threads")
    most = min(options.max_waiting, options.max_waiting_per_client)
    if options.max_lines > most:  # even an idle server would say: try again
        raise ValueError(
            f"--max-lines: expected at most {most}, since no more may wait, found {options.max_lines}."
        )
    if not 0 <= options.port <= 65535:
        raise ValueError(f"--port: expected a number from 0 to 65535, found {options.port}.")
    if options.host not in LOOPBACK and not options.api_key_file:
        print(
            f"convs2s: warning: anyone who can reach {options.host} can use this server; require keys with "
            "--api-key-file.",
            file=sys.stderr,
        )
