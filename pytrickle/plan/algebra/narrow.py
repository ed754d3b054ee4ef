"""Which columns each scan of a query reads: a change of others is none for it.

A table that is read under several names has the changes of all columns that any of them reads. For a name that reads
fewer of them, an update of the others takes back a row and brings the same one again.
"""

from dataclasses import replace

from pytrickle.plan.algebra.relation import (
    Column,
    Derived,
    Function,
    Join,
    Leaf,
    Project,
    Relation,
    Scan,
    UnionAll,
    leaves,
)


def narrowed(node: Relation) -> Relation:
    """Have every scan of a relation in sum-of-products form, at any depth, name the columns that its block reads.

    >>> from pytrickle.plan.algebra.relation import Expr
    >>> expr = Expr("a.x", frozenset({"a"}), frozenset({("a", "x")}))
    >>> block = narrowed(Project(Join((Scan("a", 1, ("x", "y")),)), (("r0", expr),)))
    >>> block.input.inputs[0].columns
    ('x',)
    """
    match node:
        case UnionAll(inputs=inputs):
            return UnionAll(tuple(map(narrowed, inputs)))
        case Project(input=Join() as join):
            read = _read(node, join)
            return replace(node, input=replace(join, inputs=tuple(_narrow(leaf, read) for leaf in join.inputs)))
        case _:
            return node


def _read(block: Project, join: Join) -> frozenset[Column]:
    """Return the columns that a block reads of its leaves."""
    exprs = [expr for _, expr in block.columns] + [predicate.expr for predicate in join.predicates]
    reads = [leaf.reads for leaf in leaves(join) if isinstance(leaf, Function)]
    return frozenset[Column]().union(*(expr.columns for expr in exprs), *reads)


def _narrow(leaf: Relation, read: frozenset[Column]) -> Leaf | Relation:
    match leaf:
        case Scan(alias=alias, columns=columns):
            return replace(leaf, columns=tuple(column for column in columns if (alias, column) in read))
        case Derived(operation=operation):
            return replace(leaf, operation=replace(operation, input=narrowed(operation.input)))
        case _:
            return leaf
