"""The benchmark of the generators runs in every form, and its report has a row for each."""

from pathlib import Path

from benchmarks.watermarks.measure import GENERATORS, emission, event_times, forms, measure
from benchmarks.watermarks.report import write_report


def test_every_generator_is_measured_in_every_form(tmp_path: Path) -> None:
    column = event_times(1_000)
    measured = [measure(name, form, column, 1) for name in GENERATORS for form in forms(1_000)]
    assert all(one.rate > 0 for one in measured)
    assert len({one.form.name for one in measured}) == len(forms(1_000)) == 7
    emissions = {name: emission(name, column, 1) for name in GENERATORS}
    write_report(measured, emissions, {"Date": "today"}, tmp_path / "report.md")
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert all(report.count(f"| {name} |") == 2 for name in GENERATORS)
    assert "1,000 rows" in report and "| Date | today |" in report
