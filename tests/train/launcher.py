"""Acts as `srun --kill-on-bad-exit`: run a command once in each folder; if one fails, end the others."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    """Run `launcher.py FOLDER... -- COMMAND...`; write pids of this process and its nodes to FOLDER/pid."""
    split = sys.argv.index("--")
    folders = [Path(one) for one in sys.argv[1:split]]
    command = sys.argv[split + 1 :]
    nodes = [subprocess.Popen(command, cwd=folder) for folder in folders]
    for folder, node in zip(folders, nodes, strict=True):
        (folder / "pid").write_text(f"{node.pid} {os.getpid()}")
    signal.signal(signal.SIGTERM, lambda *_: [*map(subprocess.Popen.terminate, nodes)])
    while any(node.poll() is None for node in nodes):
        if any(node.poll() for node in nodes):
            time.sleep(1)
            for node in nodes:
                node.terminate()
                node.wait()
        time.sleep(0.05)
    sys.exit(any(node.returncode for node in nodes))


if __name__ == "__main__":
    main()
