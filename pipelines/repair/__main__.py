"""The command `python -m pipelines.repair`, which `make repro` runs before DVC."""

import sys
from pathlib import Path

from pipelines.repair.clone import repair


def main() -> int:
    """Repair the clone in the working directory; return the exit status."""
    try:
        for sentence in repair(Path()):
            print(sentence, file=sys.stderr)
    except ValueError as error:
        print(f"python -m pipelines.repair: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
