{# A model as a stream table: dbt says what it is, and a refresher of pytrickle keeps it equal to its query. #}
{% materialization stream_table, adapter='postgres' %}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set existing_relation = load_cached_relation(this) -%}
    {%- set known = existing_relation is not none and pytrickle.is_stream_table(target_relation) -%}
    {%- if config.get('contract').enforced -%}
        {% do get_assert_columns_equivalent(sql) %}
    {%- endif -%}
    {%- set kept = known and pytrickle.has_columns_of(target_relation, sql) -%}
    {%- if known and not kept and not should_full_refresh() -%}
        {% do exceptions.raise_compiler_error("The columns of " ~ target_relation ~ " changed. With --full-refresh the "
            ~ "stream table is made anew, and dbt makes those that read it anew if they are part of the run.") %}
    {%- endif -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}

    {% do pytrickle.ensure_watermark_group(config.get('watermark_group')) %}
    {% if existing_relation is not none and not known %}
        {% do adapter.drop_relation(existing_relation) %}
    {% endif %}
    {% if not kept and pytrickle.is_registered(target_relation) %}
        {% do run_query(
            "SELECT pgtrickle.drop_stream_table(" ~ pytrickle.name_of(target_relation) ~ ", cascade => true)"
        ) %}
    {% endif %}

    {% call statement('main') -%}
        {{ pytrickle.altered(target_relation, sql) if kept else pytrickle.created(target_relation, sql) }}
    {%- endcall %}
    {% if kept and should_full_refresh() %}
        {% do run_query("SELECT pgtrickle.reinitialize_stream_table(" ~ pytrickle.name_of(target_relation) ~ ")") %}
    {% endif %}

    {% do pytrickle.ensure_indexes(target_relation) %}
    {% do apply_grants(target_relation, config.get('grants'), should_revoke=kept) %}
    {% do persist_docs(target_relation, model) %}

    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {{ adapter.commit() }}

    {% do pytrickle.refresh(target_relation) %}
    {{ run_hooks(post_hooks, inside_transaction=False) }}

    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{# The options of a stream table that a model may set, each with what create_stream_table() calls it. #}
{% macro options_of_both() %}
    {{ return(['schedule', 'refresh_mode', 'diamond_consistency', 'diamond_schedule_policy']) }}
{% endmacro %}

{% macro options_of_creation() %}
    {{ return(['output_mode', 'window_end']) }}
{% endmacro %}

{% macro options_of_its_own() %}
    {{ return(['watermark_gating', 'require_watermark', 'tier', 'schedule_timezone', 'watermark_tolerance',
        'gate_deadline', 'fuse_ceiling', 'allow_circular', 'max_fixpoint_iterations', 'batch_tolerance',
        'watermark_retention', 'statement_timeout', 'engine', 'frozen_after', 'close_after_idle']) }}
{% endmacro %}


{% macro created(relation, query) %}
    {%- set options = pytrickle.options_of_both() + pytrickle.options_of_creation() + pytrickle.options_of_its_own() -%}
    SELECT pgtrickle.create_stream_table(
        {{ pytrickle.name_of(relation) }}, {{ pytrickle.quoted(query) }}{{ pytrickle.given(options) }})
{% endmacro %}


{# The same query leaves the rows alone; what a model no longer sets goes back to its default. #}
{% macro altered(relation, query) %}
    {%- set gone = [] -%}
    {%- for option in pytrickle.options_of_its_own() if config.get(option) is none -%}
        {%- do gone.append(pytrickle.quoted(option)) -%}
    {%- endfor -%}
    SELECT pgtrickle.create_or_replace_stream_table(
        {{ pytrickle.name_of(relation) }}, {{ pytrickle.quoted(query) }}
        {{- pytrickle.given(pytrickle.options_of_both()) }});
    SELECT pgtrickle.alter_stream_table(
        {{ pytrickle.name_of(relation) }}{{ pytrickle.given(pytrickle.options_of_its_own()) }},
        reset => ARRAY[{{ gone | join(', ') }}]::text[])
{% endmacro %}


{% macro given(options) %}
    {%- for option in options if config.get(option) is not none -%}
        , {{ option }} => {{ pytrickle.quoted(config.get(option)) }}
    {%- endfor -%}
{% endmacro %}


{% macro quoted(value) %}
    {{- return("'" ~ (value | string).replace("'", "''") ~ "'") -}}
{% endmacro %}


{% macro name_of(relation) %}
    {{- return(pytrickle.quoted(relation.include(database=false))) -}}
{% endmacro %}


{% macro is_stream_table(relation) %}
    {%- set found = run_query("SELECT 1 FROM pgtrickle.pgt_stream_tables WHERE pgt_relid = to_regclass("
        ~ pytrickle.name_of(relation) ~ ")") -%}
    {{ return(found.rows | length > 0) }}
{% endmacro %}


{# Whether the catalog has a stream table of this name; its table may have been dropped, or replaced by another one. #}
{% macro is_registered(relation) %}
    {%- set found = run_query("SELECT 1 FROM pgtrickle.pgt_stream_tables WHERE pgt_schema = "
        ~ pytrickle.quoted(relation.schema) ~ " AND pgt_name = " ~ pytrickle.quoted(relation.identifier)) -%}
    {{ return(found.rows | length > 0) }}
{% endmacro %}


{# Whether a query has just the columns that a stream table has, as PostgreSQL sees them: then the table can be kept. #}
{% macro has_columns_of(relation, query) %}
    {%- set columns = "(SELECT array_agg(ROW(attname, atttypid, atttypmod, attcollation)::text ORDER BY attnum)"
        ~ " FROM pg_catalog.pg_attribute WHERE attnum > 0 AND attrelid = " -%}
    {% do run_query("CREATE TEMPORARY VIEW pytrickle_wanted AS " ~ query) %}
    {%- set found = run_query("SELECT " ~ columns ~ "'pg_temp.pytrickle_wanted'::regclass) = "
        ~ columns ~ pytrickle.name_of(relation) ~ "::regclass)") -%}
    {% do run_query("DROP VIEW pg_temp.pytrickle_wanted") %}
    {{ return(found.rows[0][0]) }}
{% endmacro %}


{# A stream table stays, so an index is known by a name made of what it is; dbt would make another one in each run. #}
{% macro ensure_indexes(relation) %}
    {%- set wanted = [] -%}
    {%- for given in config.get('indexes', default=[]) -%}
        {%- set index = adapter.parse_index(given) -%}
        {%- set shape = " USING " ~ (index.type or 'btree') ~ " (" ~ index.columns | join(', ') ~ ")" -%}
        {%- set name = "dbt_" ~ local_md5(relation.render() ~ shape ~ index.unique) -%}
        {%- do wanted.append(pytrickle.quoted(name)) -%}
        {%- do run_query("CREATE " ~ ("UNIQUE " if index.unique else "") ~ "INDEX IF NOT EXISTS " ~ name ~ " ON "
            ~ relation ~ shape) -%}
    {%- endfor -%}
    {%- set gone = run_query("SELECT indexrelid::regclass::text FROM pg_catalog.pg_index AS i "
        ~ "JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid WHERE i.indrelid = " ~ pytrickle.name_of(relation)
        ~ "::regclass AND c.relname ~ '^dbt_[0-9a-f]{32}$' AND c.relname <> ALL (ARRAY[" ~ wanted | join(", ")
        ~ "]::text[])") -%}
    {%- for row in gone.rows -%}
        {%- do run_query("DROP INDEX " ~ row[0]) -%}
    {%- endfor -%}
{% endmacro %}


{# Has a refresher fill the stream table after the commit; where none runs, the request is kept and a notice says so. #}
{% macro refresh(relation) %}
    {%- set timeout = config.get('wait_timeout') -%}
    {% call statement('refresh') %}
        SELECT pgtrickle.refresh_stream_table({{ pytrickle.name_of(relation) }}, wait => {{ config.get('wait', true) }}
            {{- ", timeout => " ~ pytrickle.quoted(timeout) if timeout is not none }})
    {% endcall %}
    {{ adapter.commit() }}
{% endmacro %}


{# For a model that is to be something else from now on; an operation, with --args '{name: sales.revenue}'. #}
{% macro drop_stream_table(name) %}
    {% do run_query("SELECT pgtrickle.drop_stream_table(" ~ pytrickle.quoted(name) ~ ")") %}
{% endmacro %}
