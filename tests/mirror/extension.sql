-- A shop whose stream tables the extension pg_trickle keeps: its catalog in the shape of release 0.108.3, with the
-- columns that moving away reads and some that it overlooks. The types are the extension's own.

CREATE SCHEMA pgtrickle;
CREATE TABLE pgtrickle.pgt_stream_tables (
    pgt_id bigserial PRIMARY KEY, pgt_relid oid NOT NULL UNIQUE, pgt_name text NOT NULL, pgt_schema text NOT NULL,
    defining_query text NOT NULL, original_query text, schedule text,
    refresh_mode text NOT NULL DEFAULT 'DIFFERENTIAL', requested_refresh_mode text NOT NULL DEFAULT 'DIFFERENTIAL',
    status text NOT NULL DEFAULT 'INITIALIZING', is_populated boolean NOT NULL DEFAULT false, frontier jsonb,
    diamond_consistency text NOT NULL DEFAULT 'atomic', diamond_schedule_policy text NOT NULL DEFAULT 'fastest',
    scc_id integer, refresh_tier text NOT NULL DEFAULT 'hot', fuse_mode text NOT NULL DEFAULT 'off',
    fuse_ceiling bigint, st_partition_key text, temporal_mode boolean NOT NULL DEFAULT false,
    orchestration_mode text NOT NULL DEFAULT 'MANAGED', defining_search_path text NOT NULL DEFAULT '"$user", public'
);
CREATE TABLE pgtrickle.pgt_dependencies (
    pgt_id bigint NOT NULL, source_relid oid NOT NULL, source_type text NOT NULL, PRIMARY KEY (pgt_id, source_relid)
);
CREATE TABLE pgtrickle.pgt_watermark_groups (
    group_id serial PRIMARY KEY, group_name text UNIQUE NOT NULL, source_relids oid[] NOT NULL,
    tolerance_secs double precision NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE pgtrickle.pgt_watermarks (
    source_relid oid PRIMARY KEY, watermark timestamptz NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(),
    advanced_by text, wal_lsn_at_advance text
);
CREATE TABLE pgtrickle.pgt_source_gates (
    source_relid oid PRIMARY KEY, gated boolean NOT NULL DEFAULT true, gated_at timestamptz NOT NULL DEFAULT now(),
    ungated_at timestamptz, gated_by text
);
CREATE TABLE pgtrickle.pgt_refresh_groups (
    group_id serial PRIMARY KEY, group_name text NOT NULL UNIQUE, member_oids oid[] NOT NULL,
    isolation text NOT NULL DEFAULT 'read_committed', created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE pgtrickle.pgt_subscriptions (
    stream_table text NOT NULL, channel text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (stream_table, channel)
);

CREATE TABLE orders (id int PRIMARY KEY, region text, amount numeric(10, 2));
CREATE TABLE lines (order_id int, line int, quantity int, PRIMARY KEY (order_id, line));
CREATE TABLE links (a int, b int);
CREATE TABLE gone (id int);

-- The stream tables: what reads another is older here, so that the order of the calls must come from what they read.
CREATE TABLE "Top regions" (__pgt_row_id bytea, region text, amount numeric);
CREATE TABLE regions (__pgt_row_id bytea, region text, amount numeric);
CREATE TABLE quantities (__pgt_row_id bytea, order_id int, quantity bigint);
CREATE TABLE odd (__pgt_row_id bytea, note text);
CREATE TABLE reach (__pgt_row_id bytea, a int, b int);
CREATE TABLE back (__pgt_row_id bytea, a int, b int);

INSERT INTO pgtrickle.pgt_stream_tables
    (pgt_relid, pgt_name, pgt_schema, defining_query, original_query, schedule, refresh_mode, requested_refresh_mode,
     status, is_populated, diamond_consistency, refresh_tier, fuse_mode, fuse_ceiling, scc_id, st_partition_key)
VALUES
    ('"Top regions"'::regclass, 'Top regions', 'public',
     'SELECT region, amount FROM regions WHERE amount > 10', NULL, NULL, 'FULL', 'FULL',
     'SUSPENDED', true, 'none', 'warm', 'off', NULL, NULL, NULL),
    ('regions'::regclass, 'regions', 'public', 'SELECT /* rewritten */ region, sum(amount) AS amount FROM orders GROUP BY 1',
     E'SELECT region, sum(amount) AS amount\nFROM orders\nGROUP BY region', '1m', 'DIFFERENTIAL', 'AUTO',
     'ACTIVE', true, 'atomic', 'hot', 'on', 5000, NULL, NULL),
    ('quantities'::regclass, 'quantities', 'public',
     'SELECT order_id, sum(quantity) AS quantity FROM lines GROUP BY order_id', NULL, NULL, 'IMMEDIATE', 'IMMEDIATE',
     'ACTIVE', true, 'atomic', 'hot', 'off', NULL, NULL, 'order_id'),
    ('odd'::regclass, 'odd', 'public', E'SELECT region || ''$query$ \\'' || E''\\t'' AS note FROM orders', NULL, '*/5 * * * *',
     'DIFFERENTIAL', 'DIFFERENTIAL', 'ACTIVE', false, 'atomic', 'hot', 'off', NULL, NULL, NULL),
    ('reach'::regclass, 'reach', 'public',
     'SELECT a, b FROM links UNION SELECT k.a, l.b FROM back k JOIN links l ON l.a = k.b', NULL, '1s',
     'DIFFERENTIAL', 'DIFFERENTIAL', 'ACTIVE', true, 'atomic', 'hot', 'off', NULL, 1, NULL),
    ('back'::regclass, 'back', 'public', 'SELECT a, b FROM reach', NULL, '1s',
     'DIFFERENTIAL', 'DIFFERENTIAL', 'ACTIVE', true, 'atomic', 'hot', 'off', NULL, 1, NULL);
INSERT INTO pgtrickle.pgt_dependencies VALUES
    (1, 'regions'::regclass, 'STREAM_TABLE'), (2, 'orders'::regclass, 'TABLE'), (3, 'lines'::regclass, 'TABLE'),
    (4, 'orders'::regclass, 'TABLE'), (5, 'links'::regclass, 'TABLE'), (5, 'back'::regclass, 'STREAM_TABLE'),
    (6, 'reach'::regclass, 'STREAM_TABLE');
INSERT INTO pgtrickle.pgt_watermark_groups (group_name, source_relids, tolerance_secs) VALUES
    ('order pipeline', ARRAY['orders'::regclass, 'lines'::regclass]::oid[], 30.5);
INSERT INTO pgtrickle.pgt_watermarks VALUES
    ('orders'::regclass, '2026-03-01 12:05+00'), ('lines'::regclass, '2026-03-01 11:55+00');
INSERT INTO pgtrickle.pgt_source_gates VALUES ('links'::regclass, true, now(), NULL), ('orders'::regclass, false, now(), now());
INSERT INTO pgtrickle.pgt_refresh_groups (group_name, member_oids, isolation) VALUES
    ('dashboard', ARRAY['regions'::regclass, 'quantities'::regclass]::oid[], 'repeatable_read');
INSERT INTO pgtrickle.pgt_subscriptions VALUES ('public.regions', 'regions_changed');
