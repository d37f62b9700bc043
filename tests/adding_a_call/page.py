"""Reads a page whose code blocks say what to write where, and writes it.

The paragraph above a block names the file in backquotes, and the place: "at the end of `Name()`",
"as the new file", "in place of the message of that name", or else the end of the file. The end of a
C++ file is before the brace that closes its namespace."""
import dataclasses
import re

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`([\w./-]+/[\w.-]+\.\w+)`")
FUNCTION = re.compile(r"\bat the\s+end\s+of\s+`(\w+)\(\)`", re.IGNORECASE)


@dataclasses.dataclass
class Block:
    language: str
    text: str
    path: str = ""      # of what is not a command
    function: str = ""  # at whose end it belongs
    is_new: bool = False
    replaces: bool = False


def read_blocks(page):
    """The page's blocks in order, each with its place."""
    blocks = []
    end = 0
    for match in BLOCK.finditer(page):
        paragraph = page[end:match.start()].strip().split("\n\n")[-1]
        end = match.end()
        block = Block(match.group(1), match.group(2))
        if block.language != "sh":
            paths = PATH.findall(paragraph)
            if not paths or not paragraph.endswith(":"):
                raise ValueError(f"no place is named above the block:\n{block.text}")
            block.path = paths[-1]
            function = FUNCTION.search(paragraph, paragraph.rfind(". ") + 1)
            block.function = function.group(1) if function else ""
            block.is_new = "as the new file" in paragraph.lower().replace("\n", " ")
            block.replaces = "in place of the message" in paragraph.replace("\n", " ")
        blocks.append(block)
    return blocks


def apply(block, text):
    """The file's text with the block in it."""
    if block.is_new:
        return block.text
    if block.replaces:
        name = re.match(r"message (\w+) \{", block.text).group(1)
        changed, count = re.subn(rf"^message {name} \{{\n.*?^\}}\n", lambda _: block.text, text,
                                 flags=re.MULTILINE | re.DOTALL)
        if count != 1:
            raise ValueError(f"{block.path} has {count} messages {name}")
        return changed
    if block.function:
        body = re.search(rf"^[\w:&*<> ]*\b{block.function}\(.*?\) \{{\n.*?(?=^\}}\n)", text,
                         re.MULTILINE | re.DOTALL)
        if body is None:
            raise ValueError(f"{block.path} has no function {block.function}")
        return text[:body.end()] + block.text + text[body.end():]
    closes = re.search(r"\n((?:\}  // namespace[^\n]*\n)+)\Z", text)
    if closes is None:
        return text + block.text
    return text[:closes.start()] + "\n" + block.text + text[closes.start():]
