"""The runs whose results the documents publish; each takes many minutes."""
