"""GROUPING SETS, ROLLUP and CUBE as the union of plain groupings."""

from sqlglot import exp

Keys = tuple[exp.Expr, ...]


def grouping_sets(select: exp.Select) -> tuple[Keys, ...]:
    """List the grouping sets of a SELECT; without GROUP BY that is one without keys."""
    clause = select.args.get("group")
    sets: list[Keys] = [()]
    for item in clause.expressions if clause else ():
        sets = [before + further for before in sets for further in _sets_of(item)]
    distinct = tuple(tuple(dict.fromkeys(keys)) for keys in sets)
    if clause is None or clause.args.get("all") is not False:
        return distinct
    # GROUP BY DISTINCT, which takes (a, b) and (b, a) for the same set.
    return tuple({frozenset(keys): keys for keys in distinct}.values())


def is_simple(select: exp.Select) -> bool:
    """Whether a SELECT has one grouping set, written as a plain list."""
    clause = select.args.get("group")
    compound = exp.GroupingSets | exp.Rollup | exp.Cube | exp.Tuple
    return clause is None or not any(isinstance(item, compound) for item in clause.expressions)


def _sets_of(item: exp.Expr) -> list[Keys]:
    match item:
        case exp.GroupingSets():
            return [found for part in item.expressions for found in _sets_of(part)]
        case exp.Rollup():
            members = [_members(part) for part in item.expressions]
            return [tuple(key for part in members[:n] for key in part) for n in range(len(members), -1, -1)]
        case exp.Cube():
            chosen: list[Keys] = [()]
            for part in map(_members, item.expressions):
                chosen = [*(before + part for before in chosen), *chosen]
            return chosen
        case _:
            return [_members(item)]


def _members(item: exp.Expr) -> Keys:
    item = item.unnest()
    return tuple(each.unnest() for each in item.expressions) if isinstance(item, exp.Tuple) else (item,)
