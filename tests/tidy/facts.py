"""Finds facts of calls that stand in code by hand: they belong in the call's description, as an
option that becomes a predicate of call_ids.h (proto/README.md)."""
import re

# A switch, up to the brace that opens its body.
SWITCH = re.compile(r"\bswitch\s*\([^{};]*\)\s*\{")
CASE = re.compile(r"\bcase\s+(?:[\w:]*::)?CallId::\w+\s*:")
LABEL = re.compile(r"\bcase\b[^;{}?]*?(?<!:):(?!:)|\bdefault\s*:|\[\[fallthrough\]\];")
# Literals, constants and enumerators: nothing that is computed.
CONSTANT = r"(?:true|false|nullptr|[-+]?\d[\w.']*|(?:\w+::)*(?:k[A-Z]\w*|[A-Z]\w*))"
RETURNS = re.compile(rf"(?:[{{}}\s]|return\s+{CONSTANT}\s*;|break\s*;)*")
LIST = re.compile(r"\bCallId\s+\w+\s*\[\s*\w*\s*\]\s*(?:=\s*)?\{|"
                  r"\barray<\s*(?:\w+::)*CallId\s*,\s*\w+\s*>\s+\w+\s*(?:=\s*)?\{|"
                  r"\binitializer_list<\s*(?:\w+::)*CallId\s*>")


def body_of(code, start):
    """What stands between the brace before `start` and the one that closes it."""
    depth = 1
    for position in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[position], 0)
        if depth == 0:
            return code[start:position]
    return code[start:]


def find_facts(code):
    """Yields (line, fault) of C++ without comments and literals."""
    def line(position):
        return code.count("\n", 0, position) + 1
    for match in SWITCH.finditer(code):
        body = body_of(code, match.end())
        if CASE.search(body) and RETURNS.fullmatch(LABEL.sub(" ", body)):
            yield line(match.start()), "a switch over calls that only returns constants"
    for match in LIST.finditer(code):
        yield line(match.start()), "a list of calls"
