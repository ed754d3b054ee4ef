"""The quotient that PostgreSQL's numeric_div gives, digit by digit: an average is a sum divided by a count.

PostgreSQL rounds it to the scale that `select_div_scale` chooses by the first digits of both, to the base of 10,000, so
that it has at least 16 significant digits, and to no fewer than the sum has.
"""

from pytrickle.plan.spark.grouping import RAISE

# Spark divides so many digits, by so many, without rounding.
DIVIDEND, DIVISOR = 28, 10
STEPS = (
    {
        "whole": "split_part(CAST(abs({sum}) AS STRING), '.', 1)",
        "behind": "split_part(CAST(abs({sum}) AS STRING), '.', 2)",
        "count": "CAST({count} AS STRING)",
    },
    {
        # The place of the first digit; 0 is that before the point.
        "weight": "CASE WHEN {q}_whole <> '0' OR {sum} = 0 THEN CAST(floor((length({q}_whole) - 1) / 4) AS INT)"
        " WHEN substr({q}_behind, 1, 4) <> '0000' THEN -1 WHEN substr({q}_behind, 5, 4) <> '0000' THEN -2 ELSE -3 END",
        "by": "CAST(floor((length({q}_count) - 1) / 4) AS INT)",
    },
    {
        "first": "CASE WHEN {q}_weight >= 0 THEN CAST(left({q}_whole, length({q}_whole) - 4 * {q}_weight) AS INT)"
        " ELSE CAST(substr({q}_behind, -4 * {q}_weight - 3, 4) AS INT) END",
        "least": "CAST(left({q}_count, length({q}_count) - 4 * {q}_by) AS INT)",
    },
    {
        "scale": "greatest(16 - 4 * ({q}_weight - {q}_by - CASE WHEN {q}_first <= {q}_least THEN 1 ELSE 0 END),"
        " {places}, 0)",
    },
    {"shifted": "{q}_whole || rpad({q}_behind, {q}_scale, '0')"},
    {
        "dividend": f"CAST(CASE WHEN length(TRIM(LEADING '0' FROM {{q}}_shifted)) > {DIVIDEND}"
        f" OR {{q}}_shifted LIKE '%E%' THEN CAST({RAISE} AS STRING) ELSE {{q}}_shifted END AS DECIMAL({DIVIDEND},0))",
        "divisor": f"CAST(nullif({{count}}, 0) AS DECIMAL({DIVISOR},0))",
    },
    {"rest": "{q}_dividend % {q}_divisor"},
    {
        "digits": "CAST(CAST(({q}_dividend - {q}_rest) / {q}_divisor"
        " + CASE WHEN 2 * {q}_rest >= {q}_divisor THEN 1 ELSE 0 END AS DECIMAL(30,0)) AS STRING)",
    },
    {"padded": "lpad({q}_digits, greatest(length({q}_digits), {q}_scale + 1), '0')"},
    {
        "": f"CASE WHEN {{q}}_padded IS NULL AND {{count}} > 0 THEN CAST({RAISE} AS STRING) ELSE"
        " CASE WHEN {sum} < 0 AND {q}_digits <> '0' THEN '-' ELSE '' END"
        " || left({q}_padded, length({q}_padded) - {q}_scale)"
        " || CASE WHEN {q}_scale > 0 THEN '.' || right({q}_padded, {q}_scale) ELSE '' END END",
    },
)


def divided(name: str, total: str, count: str, places: str) -> tuple[dict[str, str], ...]:
    """Write the steps from a sum with so many `places`, a decimal of 12, to the text of its quotient by a count.

    Each step is over the columns of those before it; the last one has the `name`. Where nothing is counted, it is NULL.
    """
    terms = {"q": name, "sum": total, "count": count, "places": places}
    return tuple(
        {"_".join(filter(None, (name, suffix))): sql.format(**terms) for suffix, sql in step.items()} for step in STEPS
    )
