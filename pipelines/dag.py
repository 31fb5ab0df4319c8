"""Draw the stages of the pipeline in the terminal: `make dag`, or `python -m pipelines.dag`.

`dvc dag` draws every arrow, and is 750 columns wide. Here, as in docs/pipeline.md, a stage with several items
is one box, and arrows implied by others are left out.
"""

import argparse

from dvc.dagascii import draw
from dvc.repo import Repo
from networkx import DiGraph, transitive_reduction  # type: ignore[import-untyped]


def draw_stages() -> str:
    """Return a drawing of the stages in the working directory, each below those that it depends on."""
    with Repo() as repo:
        edges = {tuple(stage.addressing.split("@")[0] for stage in edge) for edge in repo.index.graph.edges}
    graph = transitive_reduction(DiGraph(sorted(edges)))
    return "\n".join(line.rstrip() for line in draw(sorted(graph), sorted(graph.edges)).split("\n"))


if __name__ == "__main__":
    argparse.ArgumentParser("python -m pipelines.dag", description=__doc__).parse_args()
    print(draw_stages())
