"""The keys of longwired's file as proto/config.proto describes them."""
import collections
import pathlib
import re

FILE = pathlib.Path(__file__).resolve().parents[2] / "proto" / "config.proto"
FIELD = re.compile(r"^\s*(optional |repeated )?(\w+) (\w+) = \d+ \[\(entry\) = \{(.*?)\}\];",
                   re.DOTALL | re.MULTILINE)

Field = collections.namedtuple("Field", "kind name at_start_only")


def messages():
    """Name → fields, of those that have keys."""
    text = FILE.read_text()
    found = {}
    for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE):
        fields = [Field(kind, key, "at_start_only: true" in options)
                  for _, kind, key, options in FIELD.findall(body)]
        if len(fields) != body.count("[(entry)"):
            raise AssertionError(f"{FILE}: {name} has fields that this test cannot read")
        if fields:
            found[name] = fields
    return found


def keys():
    """Each key with a value of its own → whether it is read at the start only. What is in a block
    that is read at the start only is that block's."""
    blocks = messages()
    found = {}

    def walk(block, outer):
        for field in blocks[block]:
            name = outer + field.name
            if field.kind in blocks and not field.at_start_only:
                walk(field.kind, name + ".")
            else:
                found[name] = field.at_start_only
    walk("Config", "")
    return found
