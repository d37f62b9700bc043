"""What a file says in words: its comments, its literals that are sentences, a page's text.

The text keeps its lines. What is code becomes CODE, and marks of comments and quotes become blanks,
so that a sentence that goes on in the next line of a comment is found as one.
"""
import re

C_LIKE = {".cc", ".h", ".cu", ".proto"}
HASH_COMMENTS = {".py", ".sh", ".cmake", ".txt", ".yaml", ".yml", ""}
CODE = "\0"

C_TOKEN = re.compile(
    r'(?P<raw>R"(?P<mark>[^(\s]*)\((?P<inner>.*?)\)(?P=mark)")|(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|(?P<literal>"(?:\\.|[^"\\\n])*")'
    r"|(?P<character>(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+')", re.DOTALL)
HASH_TOKEN = re.compile(
    r'(?P<raw>"""(?P<inner>.*?)""")|(?P<comment>(?<![\w$\\{])#[^\n]*)'
    r'|(?P<literal>"(?:\\.|[^"\\\n])*"|' r"(?<!\w)'(?:\\.|[^'\\\n])*')", re.DOTALL)
# Names, options and examples in a page or a comment.
CODE_SPAN = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
# What no word is part of: a path, an option, a key with its value.
NAMES = re.compile(r"(?<!\w)--[\w-]+|[\w.-]*/[\w./*-]+|\b\w+\.(?:cc|h|py|md|proto|txt)\b")


def hide(text):
    """The text as code: nothing of it is words."""
    return re.sub(r"[^\n]*\S[^\n]*", CODE, text)


def soften(text):
    """A comment or a literal without its marks and without the names in it."""
    text = re.sub(r"\\[nt\"]", "  ", text)
    for pattern in (CODE_SPAN, LINK_TARGET, NAMES):
        text = pattern.sub(lambda match: hide(match.group()), text)
    return text


def blank_marks(comment):
    return re.sub(r"(?m)^[ \t]*(?://+|#+|\*/|/\*+|\*(?= ))", " ", comment)


def words_of_token(match):
    if match["comment"]:
        return soften(blank_marks(match["comment"]))
    inner = match.groupdict().get("inner")
    if inner is not None:
        return " " + soften(inner) + " "
    literal = match["literal"] or ""
    if " " in literal:  # else it is a name
        return " " + soften(literal[1:-1]) + " "
    return hide(match.group())


def words_of_code(text, token):
    parts, last = [], 0
    for match in token.finditer(text):
        parts += [hide(text[last:match.start()]), words_of_token(match)]
        last = match.end()
    return "".join(parts + [hide(text[last:])])


def words_of(suffix, text):
    """The words of a file with that suffix; see above."""
    if suffix == ".md":
        return soften(text)
    if suffix in C_LIKE:
        return words_of_code(text, C_TOKEN)
    if suffix in HASH_COMMENTS:
        return words_of_code(text, HASH_TOKEN)
    return hide(text)


def code_of(suffix, text):
    """The code of a source of C++, without comments, literals and includes."""
    if suffix not in C_LIKE:
        return ""
    text = C_TOKEN.sub(lambda match: " " + "\n" * match.group().count("\n"), text)
    return re.sub(r"(?m)^[ \t]*#[ \t]*include.*", "", text)
