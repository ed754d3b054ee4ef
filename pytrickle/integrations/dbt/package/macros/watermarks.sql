{# Makes a watermark group, or gives it these sources and this tolerance; `watermark_group` of a model comes here. #}
{% macro ensure_watermark_group(group) %}
    {% if group is not none and execute %}
        {%- set name = pytrickle.quoted(group.name) -%}
        {%- set sources = [] -%}
        {%- for source in group.sources -%}
            {%- do sources.append(pytrickle.quoted(source)) -%}
        {%- endfor -%}
        {%- set tolerance = pytrickle.quoted(group.tolerance or '0') ~ '::interval' -%}
        {%- set known = "SELECT 1 FROM pgtrickle.watermark_groups() WHERE group_name = " ~ name -%}
        {%- set verb = "alter" if run_query(known).rows | length else "create" -%}
        {% do run_query(
            "SELECT pgtrickle." ~ verb ~ "_watermark_group(" ~ name ~ ", sources => ARRAY[" ~ sources | join(", ")
            ~ "]::text[], tolerance => " ~ tolerance ~ ")"
        ) %}
    {% endif %}
{% endmacro %}


{# For `loaded_at_query` of a source: how far its loader says that it is complete. #}
{% macro watermark_of(relation) %}
    SELECT pgtrickle.watermark_of({{ pytrickle.name_of(relation) }})
{%- endmacro %}
