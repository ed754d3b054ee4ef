"""Drawing a graph of sources and stream tables: what there is to draw, in which layers, as Mermaid and as SVG."""
