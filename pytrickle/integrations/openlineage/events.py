"""The events of one refresh: a run that starts and completes or fails, with versions, watermarks and columns.

No event holds SQL, the message of an error, or a value of a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    JobFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    schema_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from pytrickle.integrations.openlineage.facts import Facts, Read
from pytrickle.plan.lineage import Lineage, Way, Ways
from pytrickle.refresh.values import RefreshResult

PRODUCER = "https://pypi.org/project/pytrickle-postgres/"


@attr.define
class WatermarkDatasetFacet(DatasetFacet):
    """Through which event time, or batch, a dataset is complete in this version; both absent where nobody said."""

    watermark: str | None = None
    batch: int | None = None


@attr.define
class RefreshRunFacet(RunFacet):
    """What a refresh did."""

    action: str
    engine: str | None
    inserted: int
    deleted: int


def events(result: RefreshResult, facts: Facts, lineage: Lineage | None, job_namespace: str) -> Iterator[RunEvent]:
    """Write the events of one refresh."""
    failed = result.action == "FAILED"
    run = Run(str(generate_new_uuid()), _run_facets(result, facts if failed else None))
    job = Job(job_namespace, facts.name, _job_facets())
    inputs = [_input(facts, read) for read in facts.reads]
    outputs = [_output(result, facts, lineage)]
    began = facts.at - max(result.duration, timedelta(0))
    ended = RunState.FAIL if failed else RunState.COMPLETE
    for state, at in ((RunState.START, began), (ended, facts.at)):
        yield RunEvent(
            eventType=state,
            eventTime=at.isoformat(),
            run=run,
            job=job,
            inputs=inputs,
            outputs=outputs,
            producer=PRODUCER,
        )


def _job_facets() -> dict[str, JobFacet]:
    kind = job_type_job.JobTypeJobFacet("BATCH", "PYTRICKLE", "STREAM_TABLE", producer=PRODUCER)
    return {"jobType": kind}


def _run_facets(result: RefreshResult, failure: Facts | None) -> dict[str, RunFacet]:
    name = "PostgreSQL" if result.engine == "postgres" else "Spark"
    facets: dict[str, RunFacet] = {
        "pytrickle_refresh": RefreshRunFacet(
            result.action, result.engine, result.rows_inserted, result.rows_deleted, producer=PRODUCER
        ),
    }
    if result.engine:
        facets["processing_engine"] = processing_engine_run.ProcessingEngineRunFacet(
            _version(), name, producer=PRODUCER
        )
    if failure:
        told = f"The refresh failed: {failure.sqlstate or 'an error of pytrickle'}."
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(told, "SQL", producer=PRODUCER)
    return facets


def _input(facts: Facts, read: Read) -> InputDataset:
    facets: dict[str, DatasetFacet] = {"pytrickle_watermark": _watermark(read.watermark, read.batch)}
    if read.version:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(read.version, producer=PRODUCER)
    return InputDataset(facts.namespace, read.name, facets=facets)


def _output(result: RefreshResult, facts: Facts, lineage: Lineage | None) -> OutputDataset:
    shown = result.effective_watermark
    fields = [schema_dataset.SchemaDatasetFacetFields(name, kind) for name, kind in facts.columns]
    facets: dict[str, DatasetFacet] = {
        "schema": schema_dataset.SchemaDatasetFacet(fields, producer=PRODUCER),
        "pytrickle_watermark": _watermark(shown.isoformat() if shown else None, result.effective_batch),
    }
    if facts.version:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(facts.version, producer=PRODUCER)
    if lineage:
        facets["columnLineage"] = _columns(facts, lineage)
    written = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        result.rows_inserted, producer=PRODUCER
    )
    return OutputDataset(facts.namespace, facts.name, facets=facets, outputFacets={"outputStatistics": written})


def _watermark(watermark: str | None, batch: int | None) -> WatermarkDatasetFacet:
    return WatermarkDatasetFacet(watermark, batch, producer=PRODUCER)


def _columns(facts: Facts, lineage: Lineage) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    fields = {
        name: column_lineage_dataset.Fields(_inputs(facts, ways)) for name, ways in lineage.columns.items() if ways
    }
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields, _inputs(facts, lineage.rows), producer=PRODUCER)


def _inputs(facts: Facts, ways: Ways) -> list[column_lineage_dataset.InputField]:
    names = {read.relid: read.name for read in facts.reads}
    found: dict[tuple[str, str], list[Way]] = {}
    for (relid, column), way in sorted(ways):
        if relid in names:
            found.setdefault((names[relid], column), []).append(way)
    return [
        column_lineage_dataset.InputField(facts.namespace, name, column, [_transformation(way) for way in each])
        for (name, column), each in found.items()
    ]


def _transformation(way: Way) -> column_lineage_dataset.Transformation:
    return column_lineage_dataset.Transformation("DIRECT" if way.direct else "INDIRECT", way.upper())


def _version() -> str:
    try:
        return version("pytrickle-postgres")
    except PackageNotFoundError:
        return "unknown"
