"""The commands and files of a page, as it has them: tests type what readers would."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(page, heading):
    """What stands between fences below a heading, up to the next heading."""
    text = (ROOT / page).read_text()
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", text, re.M | re.S)
    if not found:
        raise AssertionError(f"{page} has no heading '{heading}'")
    return re.findall(r"^```\w*\n(.*?)^```", found[1], re.M | re.S)


def commands(block):
    """Its lines, without the remarks behind them."""
    return [line for line in (re.sub(r" +#.*", "", line) for line in block.splitlines()) if line]
