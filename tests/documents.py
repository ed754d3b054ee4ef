"""The project's documents as data: fenced blocks with what must come out of them, links and headings."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNNABLE = ("sql", "python", "console")

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXCUSE = re.compile(r"<!-- not run: ((?:(?!-->).)*)-->\s*\Z", re.DOTALL)
_SETUP = re.compile(r"<!-- setup:\n(.*?)-->", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `output` is the block of that language which follows at once; `excuse` says why it is not run."""

    language: str
    text: str
    line: int
    excuse: str | None = None
    output: str | None = None


def documents() -> tuple[Path, ...]:
    """Return every Markdown file that users read."""
    return (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))


def blocks(path: Path) -> tuple[Block, ...]:
    """Return the blocks of a document in order.

    A comment `<!-- not run: reason -->` before a block excuses it; `<!-- setup: … -->` holds SQL that readers need not
    see, because they have such tables already.
    """
    text = path.read_text(encoding="utf-8")
    hidden = [(m.start(), Block("sql", m[1], _line(text, m.start()))) for m in _SETUP.finditer(text)]
    shown = [(m.start(), _block(text, m)) for m in _FENCE.finditer(text)]
    found: list[Block] = []
    for _, block in sorted(hidden + shown, key=lambda pair: pair[0]):
        if block.language == "output":
            found[-1] = replace(found[-1], output=block.text)
        else:
            found.append(block)
    return tuple(found)


def links(path: Path) -> tuple[str, ...]:
    """Return the targets of a document's links and images, outside of fenced blocks."""
    prose = _FENCE.sub("", path.read_text(encoding="utf-8"))
    return tuple(one or other for one, other in _LINK.findall(prose))


def anchors(path: Path) -> frozenset[str]:
    """Return the anchors that a document's headings have where Markdown is rendered."""
    prose = _FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def _block(text: str, fence: re.Match[str]) -> Block:
    excuse = _EXCUSE.search(text, 0, fence.start())
    return Block(fence[1], fence[2], _line(text, fence.start()), excuse[1].strip() if excuse else None)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
