"""Prints a function of cuda.h as a message of the call description."""

import re

from cuda_header import SCALARS

BUILTIN = {"int": "int32", "unsigned int": "uint32", "float": "float", "double": "double",
           "unsigned long long": "uint64"}


def field_type(parameter):
    """(proto type, options) by the obvious reading of the C type; c_type where there is none."""
    base, stars = parameter.base, parameter.stars
    if base == "char" and stars == 1:
        return "string", [] if parameter.const else ["(out) = true"]
    plain = re.fullmatch(r"(const )?[\w ]+\*?", parameter.c_type)
    if base in ("void", "char") or stars > 1 or not plain:
        return "opaque", [f'(c_type) = "{parameter.c_type}"']
    name = BUILTIN.get(base) or (SCALARS[base][0] if base in SCALARS else base)
    if stars == 0:
        return name, []
    return name, ["(in) = true" if parameter.const else "(out) = true"]


def message(function, options, overrides):
    """`overrides`: parameter name -> list of field options that replace the guessed ones, or a
    (type, options) pair."""
    lines = [f"message {function.symbol} {{"]
    option = "  option (call) = {" + ", ".join(options) + "};"
    if len(option) <= 100:
        lines.append(option)
    else:
        lines.append("  option (call) = {")
        lines += [f"    {item}" + ("," if item != options[-1] else "") for item in options]
        lines.append("  };")
    for number, parameter in enumerate(function.parameters, 1):
        name, field_options = field_type(parameter)
        change = overrides.get(parameter.name)
        if isinstance(change, tuple):
            name, field_options = change
        elif change is not None:
            field_options = change
        text = f"  {name} {parameter.name} = {number}"
        if field_options:
            joined = f"{text} [{', '.join(field_options)}]"
            text = joined if len(joined) < 100 else \
                f"{text} [\n      " + ",\n      ".join(field_options) + "]"
        lines.append(text + ";")
    return "\n".join(lines + ["}", ""])


def type_message(ctype):
    fields = [f"kind: {ctype.kind}"]
    if ctype.kind == "SCALAR":
        fields.append(f'wire: "{ctype.wire}"')
    if ctype.kind == "STRUCT":
        fields.append(f"bytes: {ctype.bytes}")
    name = ctype.name.replace(" ", "_")
    if name != ctype.name:
        fields.insert(1, f'c: "{ctype.name}"')
    return f"message {name} {{ option (type) = {{{', '.join(fields)}}}; }}"
