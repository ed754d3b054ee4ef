"""SQLAlchemy Core metadata of the catalog tables, of which plain statements are made.

A test holds that it is what is installed. Some statements are text and spell what they read for themselves: those that
are mostly casts, jsonb, whole rows or system catalogs (``catalog.rows_to_refresh``, ``catalog.lost``,
``catalog.restored``, ``catalog.known_tables``, ``catalog.definition_stamp``,
``catalog.past_refreshes``, ``schedule.health``, ``schedule.meanings``, ``schedule.mending``,
``apply.sorted_indexes``), those that are made
around a cut or a defining query (``apply.commit``, ``plan.append_mode``, ``plan.frozen_rows``, ``inspect.verify``,
``inspect.frozen_rows``, ``inspect.missed``), the state of one stream table (``inspect.explain``), a lock
(``schedule.daemon``), a sequence (``schedule.requests``), the refreshes of the demo (``demo.jobs``), the comparison of
names and texts with a project (``definitions.compare``, ``definitions.compare_groups``,
``definitions.compare_sources``, ``definitions.apply``, ``definitions.apply_sources``, ``definitions.export``), the
sources that are cleaned up after a tick (``schedule.tick``), the alerts that were not posted yet (``cli.webhook``),
what another tool asks, which needs nothing of this module (``integrations.openlineage.facts``), the record of a script
(``catalog.install``), which is also printed, and a remedy that names it (``inspect.doctor.examine``).
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Identity,
    Integer,
    Interval,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB, OID, REGCLASS

from pytrickle.catalog import tables_mirrored as mirrored
from pytrickle.catalog.column_types import CUT, TIMESTAMP, XID8

catalog = MetaData(schema="pgtrickle")

schema_version = Table(
    "pgt_schema_version",
    catalog,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("checksum", Text, nullable=False),
    Column("applied_at", TIMESTAMP, nullable=False),
    *mirrored.SCHEMA_VERSION,
)

stream_tables = Table(
    "pgt_stream_tables",
    catalog,
    Column("pgt_id", BigInteger, Identity(always=True), primary_key=True),
    Column("pgt_relid", REGCLASS, nullable=False, unique=True),
    Column("pgt_schema", Text, nullable=False),
    Column("pgt_name", Text, nullable=False),
    Column("defining_query", Text, nullable=False),
    Column("view_relid", REGCLASS, nullable=False),
    Column("schedule", Text, nullable=False),
    Column("refresh_mode", Text, nullable=False),
    Column("watermark_gating", Text, nullable=False),
    Column("require_watermark", Boolean, nullable=False),
    Column("status", Text, nullable=False),
    Column("session_settings", JSONB, nullable=False),
    Column("full_reason", Text),
    Column("time_dependent", Boolean, nullable=False),
    Column("frontier_version", BigInteger, nullable=False),
    Column("data_timestamp", TIMESTAMP),
    Column("effective_watermark", TIMESTAMP),
    Column("last_refresh_at", TIMESTAMP),
    Column("last_skip_reason", Text),
    Column("last_error", Text),
    Column("reinitialize_reason", Text),
    Column("refresh_xid", XID8),
    Column("system_identifier", BigInteger, nullable=False),
    Column("view_stamp", Text),
    Column("created_at", TIMESTAMP, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("schedule_timezone", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("next_due_at", TIMESTAMP),
    Column("watermark_tolerance", Interval),
    Column("gate_deadline", Interval),
    Column("gated_since", TIMESTAMP),
    Column("diamond_consistency", Text, nullable=False),
    Column("diamond_schedule_policy", Text, nullable=False),
    Column("fuse_ceiling", BigInteger),
    Column("fuse_blown_at", TIMESTAMP),
    Column("consecutive_failures", Integer, nullable=False),
    Column("retry_at", TIMESTAMP),
    Column("allow_circular", Boolean, nullable=False),
    Column("max_fixpoint_iterations", Integer, nullable=False),
    Column("batch_tolerance", BigInteger),
    Column("effective_batch", BigInteger),
    Column("watermark_retention", Interval),
    Column("output_mode", Text, nullable=False),
    Column("window_end", Text),
    Column("earlier_query_through", TIMESTAMP),
    Column("planner_defect", Text),
    Column("statement_timeout", Interval),
    Column("let_through", JSONB, nullable=False),
    Column("last_sqlstate", Text),
    *mirrored.STREAM_TABLES,
    Column("engine", Text, nullable=False),
    Column("followed", Boolean, nullable=False),
    Column("recomputation_asked", Boolean, nullable=False),
    Column("project", Text),
    Column("frozen_after", Interval),
    Column("frozen_by", Text),
    Column("frozen_before", TIMESTAMP),
    Column("close_after_idle", Interval),
    Column("kept_groups", Text),
)

dependencies = Table(
    "pgt_dependencies",
    catalog,
    Column("pgt_id", BigInteger, primary_key=True, autoincrement=False),
    Column("source_relid", REGCLASS, primary_key=True),
    Column("source_name", Text, nullable=False),
    Column("source_type", Text, nullable=False),
    Column("columns_used", ARRAY(Text), nullable=False),
    Column("frontier", CUT),
    Column("captured_xid", XID8),
    Column("captured_pos", BigInteger),
    *mirrored.DEPENDENCIES,
    Column("changed_at", TIMESTAMP),
)

change_tracking = Table(
    "pgt_change_tracking",
    catalog,
    Column("source_relid", REGCLASS, primary_key=True),
    Column("source_name", Text, nullable=False),
    Column("buffer", Text, nullable=False),
    Column("capture_mode", Text, nullable=False),
    Column("captured_columns", JSONB, nullable=False),
    Column("relations", ARRAY(OID), nullable=False),
    Column("cleaned_through", ARRAY(CUT), nullable=False),
    Column("installed_at", TIMESTAMP, nullable=False),
    Column("trigger_stamp", Text),
    *mirrored.CHANGE_TRACKING,
)

capture_gaps = Table(
    "pgt_capture_gaps",
    catalog,
    Column("source_relid", REGCLASS, nullable=False),
    Column("relation", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("noted_at", TIMESTAMP, nullable=False),
    Column("xid", XID8),
    Column("pos", BigInteger),
)

refresh_groups = Table(
    "pgt_refresh_groups",
    catalog,
    Column("group_id", Integer, Identity(always=True), primary_key=True),
    Column("group_name", Text, nullable=False, unique=True),
    Column("members", ARRAY(REGCLASS), nullable=False),
    Column("isolation", Text, nullable=False),
    Column("created_at", TIMESTAMP, nullable=False),
    *mirrored.REFRESH_GROUPS,
    Column("project", Text),
)

refresh_history = Table(
    "pgt_refresh_history",
    catalog,
    Column("refresh_id", BigInteger, Identity(always=True), primary_key=True),
    Column("pgt_id", BigInteger, nullable=False),
    Column("action", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("initiated_by", Text, nullable=False),
    Column("reason", Text),
    Column("started_at", TIMESTAMP, nullable=False),
    Column("finished_at", TIMESTAMP),
    Column("delta_rows", BigInteger),
    Column("rows_inserted", BigInteger),
    Column("rows_deleted", BigInteger),
    Column("effective_watermark", TIMESTAMP),
    Column("data_timestamp", TIMESTAMP),
    Column("error", Text),
    Column("effective_batch", BigInteger),
    Column("sqlstate", Text),
    *mirrored.REFRESH_HISTORY,
    Column("engine", Text),
    Column("refresh_xid", XID8),
    Column("phases", JSONB),
    Column("staged_bytes", BigInteger),
    Column("oldest_change_at", TIMESTAMP),
    Column("newest_change_at", TIMESTAMP),
    Column("change_clock", Text),
    Column("gave_up_ms", Double),
    Column("other_ms", Double),
)

refresh_requests = Table(
    "pgt_refresh_requests",
    catalog,
    Column("request_id", BigInteger, Identity(always=True), primary_key=True),
    Column("pgt_id", BigInteger, nullable=False),
    Column("requested_at", TIMESTAMP, nullable=False),
    Column("requested_by", Text, nullable=False),
)

refresh_answers = Table(
    "pgt_refresh_answers",
    catalog,
    Column("request_key", BigInteger, primary_key=True, autoincrement=False),
    Column("action", Text, nullable=False),
    Column("reason", Text),
    Column("error", Text),
    Column("answered_at", TIMESTAMP, nullable=False),
)

refresh_secret = Table("pgt_refresh_secret", catalog, Column("secret", BYTEA, nullable=False))

group_roles = Table(
    "pgt_group_roles",
    catalog,
    Column("purpose", Text, primary_key=True),
    Column("role_name", Text, nullable=False),
    Column("role_oid", OID, nullable=False),
)

drain = Table(
    "pgt_drain",
    catalog,
    Column("only_row", Boolean, primary_key=True),
    Column("active", Boolean, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("requested_at", TIMESTAMP, nullable=False),
    Column("requested_by", Text, nullable=False),
)

clusters = Table(
    "pgt_clusters",
    catalog,
    Column("system_identifier", BigInteger, primary_key=True, autoincrement=False),
)

subscriptions = Table(
    "pgt_subscriptions",
    catalog,
    Column("stream_table", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("created_at", TIMESTAMP, nullable=False),
)
