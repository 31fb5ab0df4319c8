"""A Mermaid flowchart as SVG for the site, whose pages may not load Mermaid from another host."""

import re
from html import escape
from itertools import chain

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout, VertexViewer
from grandalf.routing import EdgeViewer, route_with_lines

ARROW = re.compile(r"^\s*(\S+) --> (\S+)$", re.MULTILINE)
LETTER, HEIGHT, MARGIN = 9, 28, 10  # pixels
ARROWHEAD = (
    '<marker id="arrowhead" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker>'
)


def svg(mermaid: str) -> str:
    """Return an SVG element of the arrows of a flowchart, in the text's color.

    Args:
        mermaid: lines such as `train --> tune`; the graph must be connected.
    """
    graph = laid_out(ARROW.findall(mermaid))
    boxes = "".join(box(vertex) for vertex in graph.C[0].sV)
    lines = "".join(line(edge) for edge in graph.C[0].sE)
    views = [vertex.view for vertex in graph.C[0].sV]
    points = [point for edge in graph.C[0].sE for point in edge.view._pts]
    left, right = bounds([(view.xy[0], view.w / 2) for view in views] + [(x, 0) for x, _ in points])
    top, bottom = bounds([(view.xy[1], view.h / 2) for view in views])
    size = f'width="{right - left:.0f}" viewBox="{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}"'
    return f'<svg role="img" style="max-width: 100%" {size}>{ARROWHEAD}{lines}{boxes}</svg>'


def laid_out(arrows: list[tuple[str, str]]) -> Graph:
    """Return the graph with its boxes and arrows laid out."""
    vertices = {name: Vertex(name) for name in chain.from_iterable(arrows)}
    edges = [Edge(vertices[begin], vertices[end]) for begin, end in arrows]
    for name, vertex in vertices.items():
        vertex.view = VertexViewer(w=LETTER * len(name) + 2 * MARGIN, h=HEIGHT)
    for edge in edges:
        edge.view = EdgeViewer()
    graph = Graph(vertices.values(), edges)
    layout = SugiyamaLayout(graph.C[0])
    layout.route_edge = route_with_lines
    layout.init_all()
    layout.draw()
    return graph


def box(vertex: Vertex) -> str:
    """Return a vertex with its name."""
    (x, y), width = vertex.view.xy, vertex.view.w
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{width}" height="{HEIGHT}" rx="4" '
        f'fill="none" stroke="currentColor"/><text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" '
        f'fill="currentColor" font-size="14" font-family="sans-serif">{escape(vertex.data)}</text>'
    )


def line(edge: Edge) -> str:
    """Return an edge with its arrowhead."""
    points = " ".join(f"{x:.0f},{y:.0f}" for x, y in edge.view._pts)
    return f'<polyline points="{points}" fill="none" stroke="currentColor" marker-end="url(#arrowhead)"/>'


def bounds(extents: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the lower and upper end of all extents (center, half of the size), with a margin."""
    low, high = min(at - half for at, half in extents), max(at + half for at, half in extents)
    return low - MARGIN, high + MARGIN
