"""SQLAlchemy Core metadata of the catalog tables about sources: watermarks, gates, late rows, loaders, feeds."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Identity,
    Integer,
    Interval,
    Numeric,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, REGCLASS

from pytrickle.catalog import tables_mirrored as mirrored
from pytrickle.catalog.column_types import CUT, NAME, PROGRESS, TIMESTAMP, XID8
from pytrickle.catalog.tables import catalog

watermarks = Table(
    "pgt_watermarks",
    catalog,
    Column("source_relid", REGCLASS, primary_key=True),
    Column("source_name", Text, nullable=False),
    Column("watermark", TIMESTAMP),
    Column("cut", CUT, nullable=False),
    Column("advanced_at", TIMESTAMP, nullable=False),
    Column("last_seen_at", TIMESTAMP, nullable=False),
    Column("advanced_by", Text, nullable=False),
    Column("marked_idle_at", TIMESTAMP),
    Column("marked_idle_by", Text),
    Column("batch", BigInteger),
    *mirrored.WATERMARKS,
)

watermark_history = Table(
    "pgt_watermark_history",
    catalog,
    Column("history_id", BigInteger, Identity(always=True), primary_key=True),
    Column("source_relid", REGCLASS, nullable=False),
    Column("watermark", TIMESTAMP),
    Column("cut", CUT, nullable=False),
    Column("advanced_at", TIMESTAMP, nullable=False),
    Column("advanced_by", Text, nullable=False),
    Column("batch", BigInteger),
    Column("progress", PROGRESS),
)

watermark_groups = Table(
    "pgt_watermark_groups",
    catalog,
    Column("group_id", Integer, Identity(always=True), primary_key=True),
    Column("group_name", Text, nullable=False, unique=True),
    Column("sources", ARRAY(REGCLASS), nullable=False),
    Column("tolerance", Interval),
    Column("created_at", TIMESTAMP, nullable=False),
    Column("stale_after", Interval),
    Column("on_stale", Text, nullable=False),
    Column("idle_after", Interval),
    Column("batch_tolerance", BigInteger),
    *mirrored.WATERMARK_GROUPS,
    Column("source_names", ARRAY(Text)),
    Column("source_owners", ARRAY(Text)),
    Column("project", Text),
)

source_gates = Table(
    "pgt_source_gates",
    catalog,
    Column("source_relid", REGCLASS, primary_key=True),
    Column("source_name", Text, nullable=False),
    Column("gated_at", TIMESTAMP, nullable=False),
    Column("gated_by", Text, nullable=False),
    Column("reason", Text),
    Column("ungated_at", TIMESTAMP),
    *mirrored.SOURCE_GATES,
)

source_limits = Table(
    "pgt_source_limits",
    catalog,
    Column("source_relid", REGCLASS, primary_key=True),
    Column("source_name", Text, nullable=False),
    Column("stale_after", Interval),
    Column("on_stale", Text, nullable=False),
    Column("idle_after", Interval),
    Column("project", Text),
)

alert_limits = Table(
    "pgt_alert_limits",
    catalog,
    Column("limit_id", Integer, Identity(always=True), primary_key=True),
    Column("source_relid", REGCLASS),
    Column("source_name", Text),
    Column("group_id", Integer),
    Column("lag", Interval),
    Column("late_share", Double),
    Column("rate", Double),
    Column("idle_share", Double),
)

watermark_checks = Table(
    "pgt_watermark_checks",
    catalog,
    Column("source_relid", REGCLASS, primary_key=True),
    Column("source_name", Text, nullable=False),
    Column("max_ahead", Interval),
    Column("on_doubt", Text, nullable=False),
)

withdrawn_watermarks = Table(
    "pgt_withdrawn_watermarks",
    catalog,
    Column("withdrawal_id", BigInteger, Identity(always=True), primary_key=True),
    Column("source_relid", REGCLASS, nullable=False),
    Column("source_name", Text, nullable=False),
    Column("version", BigInteger),
    Column("watermark", TIMESTAMP),
    Column("batch", BigInteger),
    Column("advanced_at", TIMESTAMP, nullable=False),
    Column("advanced_by", Text),
    Column("lowered_to", PROGRESS, nullable=False),
    Column("withdrawn_at", TIMESTAMP, nullable=False),
    Column("withdrawn_by", Text, nullable=False),
)

event_times = Table(
    "pgt_event_times",
    catalog,
    Column("event_time_id", Integer, Identity(always=True), primary_key=True),
    Column("source_relid", REGCLASS, nullable=False, unique=True),
    Column("source_name", Text, nullable=False),
    Column("column_name", Text, nullable=False),
    Column("column_type", Text, nullable=False),
    Column("time_zone", Text),
    Column("too_late", Interval),
    Column("declared_at", TIMESTAMP, nullable=False),
    Column("declared_by", Text, nullable=False),
    Column("rows_before", BigInteger, nullable=False),
    Column("late_forgotten", BigInteger, nullable=False),
    Column("project", Text),
)

late_rows = Table(
    "pgt_late_rows",
    catalog,
    Column("late_id", BigInteger, Identity(always=True), primary_key=True),
    Column("source_relid", REGCLASS, nullable=False),
    Column("event_time", TIMESTAMP, nullable=False),
    Column("watermark", TIMESTAMP, nullable=False),
    Column("row_data", JSONB, nullable=False),
    Column("arrived_at", TIMESTAMP, nullable=False),
    Column("arrived_by", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("settled_at", TIMESTAMP),
    Column("settled_by", Text),
    Column("replay_xid", XID8),
    Column("replay_time", TIMESTAMP),
)

alerts = Table(
    "pgt_alerts",
    catalog,
    Column("alert_id", BigInteger, Identity(always=True), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("group_name", Text),
    Column("since", TIMESTAMP, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("opened_at", TIMESTAMP, nullable=False),
    Column("closed_at", TIMESTAMP),
    Column("opening_posted_at", TIMESTAMP),
    Column("closing_posted_at", TIMESTAMP),
)

late_changes = Table(
    "pgt_late_changes",
    catalog,
    Column("late_id", BigInteger, Identity(always=True), primary_key=True),
    Column("pgt_id", BigInteger, nullable=False),
    Column("window_end", TIMESTAMP, nullable=False),
    Column("closed_through", TIMESTAMP, nullable=False),
    Column("weight", BigInteger, nullable=False),
    Column("change", JSONB, nullable=False),
    Column("recorded_at", TIMESTAMP, nullable=False),
)

partitioned_sources = Table(
    "pgt_partitioned_sources",
    catalog,
    Column("source_relid", REGCLASS, primary_key=True),
    Column("idle_timeout", Interval),
    Column("judged_at", TIMESTAMP, nullable=False),
)

source_partitions = Table(
    "pgt_source_partitions",
    catalog,
    Column("source_relid", REGCLASS, primary_key=True),
    Column("partition_name", Text, primary_key=True),
    Column("watermark", TIMESTAMP),
    Column("silent_since", TIMESTAMP, nullable=False),
)

sink_batches = Table(
    "pgt_sink_batches",
    catalog,
    Column("sink_id", Integer, Identity(always=True), primary_key=True),
    Column("source_relid", REGCLASS, nullable=False),
    Column("sink_name", Text, nullable=False),
    Column("query_id", Text),
    Column("batch_id", BigInteger),
    Column("committed_at", TIMESTAMP),
    Column("committed_by", Text),
    Column("row_count", BigInteger),
    Column("row_digest", Numeric),
    Column("loader", Text),
)

feeds = Table(
    "pgt_feeds",
    catalog,
    Column("feed_id", BigInteger, Identity(always=True), primary_key=True),
    Column("feed_name", Text, nullable=False),
    Column("source_relid", REGCLASS, nullable=False),
    Column("source_name", Text, nullable=False),
    Column("feed_owner", Text, nullable=False),
    Column("columns_used", ARRAY(Text), nullable=False),
    Column("captured_xid", XID8, nullable=False),
    Column("captured_pos", BigInteger, nullable=False),
    Column("frontier", CUT, nullable=False),
    Column("read_version", BigInteger),
    Column("max_age", Interval),
    Column("max_rows", BigInteger),
    Column("cut_off_at", TIMESTAMP),
    Column("cut_off_reason", Text),
    Column("created_at", TIMESTAMP, nullable=False),
    Column("read_at", TIMESTAMP),
    Column("system_identifier", BigInteger, nullable=False),
)

versions = Table(
    "pgt_versions",
    catalog,
    Column("version", BigInteger, Identity(always=True), primary_key=True),
    Column("source_relid", REGCLASS, nullable=False),
    Column("watermark", TIMESTAMP),
    Column("batch", BigInteger),
    Column("is_first", Boolean, nullable=False),
    Column("cut", CUT, nullable=False),
    Column("recorded_at", TIMESTAMP, nullable=False),
)

calls = Table(
    "pgt_calls",
    catalog,
    Column("call_id", BigInteger, Identity(always=True), primary_key=True),
    Column("caller", NAME, nullable=False),
    Column("call", Text),
    Column("source", REGCLASS),
    Column("arguments", JSONB),
    Column("result", JSONB),
)

loaders = Table(
    "pgt_loaders",
    catalog,
    Column("source_relid", REGCLASS, primary_key=True),
    Column("loader", Text, primary_key=True),
    Column("source_name", Text, nullable=False),
    Column("granted_at", TIMESTAMP, nullable=False),
    Column("granted_by", Text, nullable=False),
)

moved_rows = Table(
    "pgt_moved_rows",
    catalog,
    Column("event_time_id", Integer, primary_key=True, autoincrement=False),
    Column("moved_by", XID8, primary_key=True),
)
