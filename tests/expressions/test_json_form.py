"""Expressions as plain data: every node is in the table, and what is not one is refused."""

import inspect

import pytest

import setpoint as sp
from setpoint import expressions
from setpoint.expressions import Expression, from_json, to_json
from setpoint.expressions.json_form import NODES


def test_every_final_node_is_in_the_table():
    nodes = {
        name
        for name, thing in vars(expressions).items()
        if inspect.isclass(thing)
        and issubclass(thing, Expression)
        and not inspect.isabstract(thing)
    }
    assert nodes <= set(NODES)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"node": "System"}, 'unknown node "System"'),
        ({"node": "Number"}, "not an expression"),
        ({"node": "Number", "value": 1, "more": 2}, "not an expression"),
        ({"node": "Literal", "column": "a", "value": 1, "holds": True}, "but Literal"),
        ({}, "not an expression"),
        ([1, 2], "but tuple"),
        ("recall", "but str"),
        (
            {"node": "Over", "how": "x", "inner": {"node": "Number", "value": 1}, "by": "class"},
            "not",
        ),
    ],
)
def test_what_is_no_expression_is_refused(data, sentence):
    with pytest.raises(sp.FileError, match=sentence):
        from_json(data)


def test_checks_run_again():
    data = to_json(sp.auroc(max_fpr=0.5))
    data["body"]["max_fpr"] = 7
    with pytest.raises(sp.SetpointError):
        from_json(data)
