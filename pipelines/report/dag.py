"""Draw the DAG of dvc.yaml in docs/pipeline.md, as Mermaid, which GitHub renders.

    python -m pipelines.report.dag

`dvc dag --mermaid` has a node for each seed and split, and an arrow from the stage `snapshot` to every other
one. Here a stage is one node; `snapshot` and all arrows implied by others are left out.
"""

import re
import sys
from pathlib import Path

import networkx as nx  # type: ignore[import-untyped]
from dvc.repo import Repo

PAGE = Path("docs/pipeline.md")
BLOCK = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.DOTALL)


def mermaid(root: Path) -> str:
    """Return the DAG of a repository, an arrow from each stage to those that use its outputs."""
    graph = nx.DiGraph()
    with Repo(str(root)) as repo:
        for user, maker in repo.index.graph.edges:  # DVC's edges point to dependencies
            graph.add_edge(*(stage.name.partition("@")[0] for stage in (maker, user)))
    graph.remove_node("snapshot")
    reduced = nx.transitive_reduction(graph)
    arrows = [f"    {maker} --> {user}\n" for maker, user in sorted(reduced.edges)]
    return "".join(["flowchart TD\n", *arrows])


def main() -> int:
    """Draw the DAG of the repository in the working directory; return the exit status."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda _: mermaid(Path()), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
