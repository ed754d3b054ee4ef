"""Which boxes stand in which layer, and below which other: a graph where each follows all that it reads."""

from __future__ import annotations

import networkx as nx

from pytrickle.inspect.drawing.picture import Picture


def reading(picture: Picture) -> nx.DiGraph:
    """Return the graph with an edge from each box to those that read it; what no box stands for is left out."""
    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(box.name for box in picture.boxes))
    graph.add_edges_from((source, box.name) for box in picture.boxes for source in box.reads if source in graph)
    return graph


def layers(graph: nx.DiGraph) -> tuple[tuple[str, ...], ...]:
    """Put each box into the layer after the last one that it reads; boxes that read each other share a layer.

    >>> layers(nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c")]))
    (('a',), ('b',), ('c',))
    """
    together = nx.condensation(graph)
    generations = nx.topological_generations(together)
    return tuple(
        tuple(sorted(name for part in generation for name in together.nodes[part]["members"]))
        for generation in generations
    )


def hanging(graph: nx.DiGraph) -> dict[str, str | None]:
    """Return below which box each hangs when the graph is written as a tree, layer by layer, None for a root.

    Of the boxes that it reads, that is the one farthest down; of several, the first by name. Of boxes that read each
    other, each hangs below one that hangs already.
    """
    depth: dict[str, int] = {}
    above: dict[str, str | None] = {}
    for number, layer in enumerate(layers(graph)):
        waiting = dict.fromkeys(layer)
        while waiting:
            name = next((name for name in waiting if not above.keys().isdisjoint(graph.pred[name])), min(waiting))
            sources = above.keys() & graph.pred[name]
            above[name] = min(sources, key=lambda source: (-depth[source], source), default=None)
            depth[name] = number
            del waiting[name]
    return above
