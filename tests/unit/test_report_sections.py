"""A section of a report that is measured by itself takes the place of its last one, and outlives the others' runs."""

from pathlib import Path

from benchmarks.engines.sections import APART, CLUSTER, FIRST_REFRESH, put_section, sections_apart

REPORT = "# Engines\n\nText.\n\n## Seconds\n\n1\n\n## Conditions\n\nA machine.\n"


def test_sections_come_before_the_conditions_and_replace_their_last_ones(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_text(REPORT)
    put_section(path, FIRST_REFRESH, "old")
    put_section(path, CLUSTER, "two")
    put_section(path, FIRST_REFRESH, "new\n")
    before, after = REPORT.split("## Conditions")
    written = f"{before}## {CLUSTER}\n\ntwo\n\n## {FIRST_REFRESH}\n\nnew\n\n## Conditions{after}"
    assert path.read_text() == written
    found = sections_apart(path)
    assert {title: text.strip() for title, text in found.items()} == {CLUSTER: "two", FIRST_REFRESH: "new"}
    path.write_text(REPORT)
    assert set(found) < set(APART)
    for title, text in found.items():
        put_section(path, title, text)
    assert sections_apart(path) == found


def test_a_section_may_be_the_first_that_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    assert sections_apart(path) == {}
    put_section(path, CLUSTER, "two")
    assert path.read_text() == f"## {CLUSTER}\n\ntwo\n"
