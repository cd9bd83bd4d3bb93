"""Reading expressions from text, with errors that point at the place.

    constraint := sum (">=" | "<=" | "==") sum
    sum        := product (("+" | "-") product)*
    product    := signed (("*" | "/") signed)*
    signed     := "-" signed | power
    power      := postfix ["**" number]
    postfix    := atom ("." ("of" | "on") "(" arguments ")")*
    atom       := number | name | name "(" arguments ")" | "(" sum ")"

Names come from a table that is passed in, so that the grammar knows no metric.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from setpoint._core.errors import GoalError, GoalSyntaxError, KindError
from setpoint._core.words import did_you_mean
from setpoint.expressions.arithmetic import Expression, Number
from setpoint.expressions.constraint import OPERATORS, Constraint

_TOKENS = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?%?)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|“[^”]*”)
      | (?P<sign>\*\*|>=|<=|==|[-+*/^(),.<>=≥≤])""",
    re.VERBOSE,
)
_SAME = {"≥": ">=", "≤": "<=", "^": "**"}
DEEPEST = 50
_CONSTANTS = {"true": True, "false": False, "none": None}


class Token(NamedTuple):
    """A word of the text and its place."""

    kind: str
    word: str
    start: int
    stop: int


def tokenize(text: str) -> list[Token]:
    """Cut a text into tokens; the last one marks the end."""
    tokens, place = [], 0
    while place < len(text):
        match = _TOKENS.match(text, place)
        if match is None:
            what = "a quote that is never closed" if text[place] in "\"'" else repr(text[place])
            raise GoalSyntaxError(f"cannot read {what}", text, place)
        if match.lastgroup != "space":
            word = _SAME.get(match.group(), match.group())
            tokens.append(Token(match.lastgroup or "", word, place, match.end()))
        place = match.end()
    return [*tokens, Token("end", "the end", len(text), len(text) + 1)]


class Parser:
    """Recursive descent over one text.

    Parameters
    ----------
    text : str
    names : mapping of str to Expression or callable
        Fixed metrics, and factories that take arguments.
    usages : mapping of str to str
        How a name with arguments is written, for error messages.
    """

    def __init__(self, text: str, names: Mapping[str, Any], usages: Mapping[str, str]) -> None:
        if not isinstance(text, str):
            raise KindError(f"a text is needed here; got {type(text).__name__}")
        self.text = text
        self.names = names
        self.usages = usages
        self.tokens = tokenize(text)
        self.place = 0
        self.depth = 0

    # --- tokens ------------------------------------------------------------------------------

    @property
    def now(self) -> Token:
        """The token to be read."""
        return self.tokens[self.place]

    def at(self, *words: str) -> bool:
        """Whether the token to be read is one of these words or signs (case aside)."""
        return self.now.kind != "string" and self.now.word.lower() in words

    def skip(self, *words: str) -> bool:
        """Read one of these words if it is next."""
        found = self.at(*words)
        self.place += found
        return found

    def fail(self, sentence: str, token: Token | None = None, stop: int | None = None) -> NoReturn:
        """Complain about a token."""
        token = token or self.now
        raise GoalSyntaxError(sentence, self.text, token.start, stop or token.stop)

    def need(self, word: str, after: str) -> None:
        """Read this sign, or complain."""
        if not self.skip(word):
            self.fail(f'expected "{word}" {after}, found {self._found()}')

    def _found(self) -> str:
        if self.now.kind == "string":
            return f"the text {self.now.word}"
        return "the end" if self.now.kind == "end" else f'"{self.now.word}"'

    # --- grammar -----------------------------------------------------------------------------

    def constraint(self) -> Constraint:
        """Read ``sum op sum``."""
        left = self.sum()
        sign = self.now
        if self.at("=", "<", ">"):
            self.fail(f'"{sign.word}" is not a comparison here; write {self._comparison()}')
        if isinstance(left, Number) and self._decimal_comma():
            self.fail("a comma joins constraints; write a decimal point, as in 0.7", sign)
        if not self.skip(*OPERATORS):
            self.fail(f"a constraint compares two sides with >=, <= or ==; found {self._found()}")
        right = self.sum()
        if self.at(*OPERATORS, "<", ">", "="):
            self.fail("a range is two constraints; write: metric >= a, metric <= b")
        if isinstance(left, Number) and not isinstance(right, Number):
            flip = {">=": "<=", "<=": ">=", "==": "=="}
            return Constraint(right, flip[sign.word], left)
        return Constraint(left, sign.word, right)

    def _comparison(self) -> str:
        """What was meant by a lone =, < or >."""
        after = self.tokens[self.place + 1].word
        if self.now.word == "=":
            return {">": ">=", "<": "<="}.get(after, ">= or <= (== for exactly)")
        return {"<": "<=", ">": ">="}[self.now.word]

    def _decimal_comma(self) -> bool:
        """Whether the number just read stands after "0," as in 0,7."""
        kinds = [token.kind for token in self.tokens[: self.place]][-3:]
        words = [token.word for token in self.tokens[: self.place]][-3:]
        return kinds == ["number", "sign", "number"] and words[1] == "," and words[0].isdigit()

    def sum(self) -> Expression:
        """Read a sum."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"nested more than {DEEPEST} deep; simplify it")
        value = self._sum()
        self.depth -= 1
        return value

    def _sum(self) -> Expression:
        value = self.product()
        while self.at("+", "-"):
            plus = self.skip("+") or not self.skip("-")
            right = self.product()
            value = value + right if plus else value - right
        return value

    def product(self) -> Expression:
        """Read a product."""
        value = self.signed()
        while self.at("*", "/"):
            sign = self.now
            times = self.skip("*") or not self.skip("/")
            right = self.signed()
            if not times and isinstance(right, Number) and right.value == 0:
                self.fail("a division by zero", sign)
            value = value * right if times else value / right
        return value

    def signed(self) -> Expression:
        """Read a sign and what follows it."""
        minus = 0
        while self.skip("-"):
            minus += 1
        inner = self.power()
        if minus % 2 == 0:
            return inner
        return Number(-inner.value) if isinstance(inner, Number) else -inner

    def power(self) -> Expression:
        """Read a power."""
        base = self.postfix()
        if not self.skip("**"):
            return base
        place = self.now
        exponent = self.signed()
        if not isinstance(exponent, Number):
            self.fail("an exponent is a number", place)
        try:
            folded = isinstance(base, Number)
            return Number(base.value**exponent.value) if folded else base**exponent.value
        except (ArithmeticError, TypeError, GoalError):
            self.fail(f"{base} ** {exponent} is no number to use here", place)

    def postfix(self) -> Expression:
        """Read an atom and its ``.of(…)`` and ``.on(…)``."""
        value = self.atom()
        while self.skip("."):
            word = self.now
            if not self.skip("of", "on"):
                self.fail('after a dot stands of("class") or on(group="value")')
            self.need("(", f'after "{word.word}"')
            positional, keywords = self.arguments()
            stop = self.tokens[self.place - 1].stop
            of = word.word.lower() == "of"
            if of and (len(positional) != 1 or keywords):
                self.fail('of(…) takes one class, for example recall.of("cat")', word, stop)
            if not of and (positional or not keywords):
                self.fail('on(…) takes columns, for example recall.on(group="b")', word, stop)
            try:
                value = value.of(positional[0]) if of else value.on(**keywords)
            except GoalError as error:
                self.fail(str(error), word, stop)
        return value

    def atom(self) -> Expression:
        """Read a number, a metric, or a sum in parentheses."""
        token = self.now
        self.place += 1
        if token.kind == "number":
            return Number(_number(token.word))
        if token.word == "(":
            value = self.sum()
            self.need(")", "to close the parenthesis")
            return value
        if token.kind != "name":
            self.place -= 1
            self.fail(f"expected a metric or a number, found {self._found()}", token)
        found = self.names.get(token.word)
        if found is None:
            beta = re.fullmatch(r"f(\d+(?:\.\d+)?)", token.word)
            hint = did_you_mean(token.word, self.names, "`setpoint metrics` lists them all")
            hint = f"did you mean f_beta({beta[1]})?" if beta else hint
            self.fail(f'unknown metric "{token.word}": {hint}', token)
        if not self.skip("("):
            if isinstance(found, Expression):
                return found
            self.fail(f"{token.word} takes arguments; write {self.usages[token.word]}", token)
        positional, keywords = self.arguments()
        return self._call(token, found, positional, keywords)

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Read ``a, b, key=value)``; the opening parenthesis is read already."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        while not self.skip(")"):
            if positional or keywords:
                self.need(",", "between arguments")
            name, after = self.now, self.tokens[min(self.place + 1, len(self.tokens) - 1)]
            if name.kind in ("name", "string") and after.word == "=":
                self.place += 2
                key = _string(name.word) if name.kind == "string" else name.word
                if key in keywords:
                    self.fail(f'"{key}" is given twice', name)
                keywords[key] = self._bare_word() or self.value()
            elif keywords:
                self.fail("a plain argument cannot follow a named one")
            else:
                positional.append(self.value())
        return positional, keywords

    def _bare_word(self) -> str | None:
        """A name without quotes after ``by=`` or ``group=``: shells eat quotes."""
        after = self.tokens[min(self.place + 1, len(self.tokens) - 1)]
        word = self.now.word
        if self.now.kind != "name" or after.word not in (",", ")") or word.lower() in _CONSTANTS:
            return None
        if word in self.names:
            return None
        self.place += 1
        return word

    def value(self) -> Any:
        """Read an argument: a string, a constant, a number, or an expression."""
        token = self.now
        if token.kind == "string":
            self.place += 1
            return _string(token.word)
        if token.kind == "name" and token.word.lower() in _CONSTANTS:
            self.place += 1
            return _CONSTANTS[token.word.lower()]
        value = self.sum()
        if not isinstance(value, Number):
            return value
        return int(value.value) if value.value == int(value.value) else value.value

    def _call(self, token: Token, found: Any, positional: list[Any], keywords: dict) -> Expression:
        stop = self.tokens[self.place - 1].stop
        fixed = isinstance(found, Expression)
        try:
            if fixed and positional:
                raise GoalError(f"{token.word} takes no such argument; write {token.word}")
            if fixed:
                return found(**keywords)
            inspect.signature(found).bind(*positional, **keywords)
            return found(*positional, **keywords)
        except GoalError as error:
            self.fail(str(error), token, stop)
        except TypeError as error:
            reason = str(error)
            usage = self.usages.get(token.word, token.word)
            self.fail(f"{token.word}: {reason}; write {usage}", token, stop)


def _number(word: str) -> float:
    return float(word[:-1]) / 100 if word.endswith("%") else float(word)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _string(word: str) -> str:
    """The text between the quotes; backslash escapes as in JSON."""

    def unescape(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    inner = word[1:-1]
    return inner if word[0] == "“" else re.sub(r"\\(u[0-9a-fA-F]{4}|.)", unescape, inner)
