"""Columns of the catalog tables under the names of the extension pg_trickle: most are generated from ours."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, OID

from pytrickle.catalog.column_types import TIMESTAMP

STREAM_TABLES: tuple[Column[Any], ...] = (
    Column("original_query", Text),
    Column("requested_refresh_mode", Text),
    Column("is_populated", Boolean),
    Column("frontier", JSONB),
    Column("consecutive_errors", Integer),
    Column("needs_reinit", Boolean),
    Column("requested_cdc_mode", Text),
    Column("is_append_only", Boolean, nullable=False),
    Column("scc_id", Integer),
    Column("last_fixpoint_iterations", Integer),
    Column("max_differential_joins", Integer),
    Column("max_delta_fraction", Double),
    Column("pooler_compatibility_mode", Boolean, nullable=False),
    Column("refresh_tier", Text),
    Column("effective_refresh_mode", Text),
    Column("fuse_mode", Text),
    Column("fuse_state", Text),
    Column("fuse_sensitivity", Integer),
    Column("blown_at", TIMESTAMP),
    Column("blow_reason", Text),
    Column("last_error_message", Text),
    Column("last_error_at", TIMESTAMP),
    Column("refresh_reason", Text),
    Column("refresh_reason_detail", Text),
    Column("freshness_deadline_ms", BigInteger),
    Column("target_freshness_mode", Text),
    Column("st_partition_key", Text),
    Column("in_shadow_build", Boolean, nullable=False),
    Column("shadow_table_name", Text),
    Column("st_placement", Text, nullable=False),
    Column("temporal_mode", Boolean, nullable=False),
    Column("storage_backend", Text, nullable=False),
    Column("storage_fillfactor", Integer),
    Column("post_refresh_action", Text, nullable=False),
    Column("reindex_drift_threshold", Double),
    Column("orchestration_mode", Text, nullable=False),
    Column("defining_search_path", Text),
    Column("updated_at", TIMESTAMP),
    Column("last_error_code", Text),
    Column("last_error_retryable", Boolean),
)

DEPENDENCIES = (Column("cdc_mode", Text, nullable=False),)

CHANGE_TRACKING: tuple[Column[Any], ...] = (
    Column("slot_name", Text),
    Column("tracked_by_pgt_ids", ARRAY(BigInteger), nullable=False),
)

REFRESH_HISTORY: tuple[Column[Any], ...] = (
    Column("start_time", TIMESTAMP),
    Column("end_time", TIMESTAMP),
    Column("rows_updated", BigInteger, nullable=False),
    Column("delta_row_count", BigInteger),
    Column("was_full_fallback", Boolean),
    Column("refresh_reason", Text),
    Column("refresh_reason_detail", Text),
    Column("error_message", Text),
    Column("fixpoint_iteration", Integer),
    Column("error_sqlstate", Text),
    Column("duration_ms", Double),
    Column("error_code", Text),
    Column("retryable", Boolean),
)

WATERMARKS: tuple[Column[Any], ...] = (
    Column("updated_at", TIMESTAMP),
    Column("wal_lsn_at_advance", Text),
)

WATERMARK_GROUPS: tuple[Column[Any], ...] = (
    Column("source_relids", ARRAY(OID)),
    Column("tolerance_secs", Double),
)

SOURCE_GATES = (Column("gated", Boolean),)

REFRESH_GROUPS: tuple[Column[Any], ...] = (Column("member_oids", ARRAY(OID)),)

SCHEMA_VERSION = (Column("description", Text),)
