"""What a daemon's metrics say."""
import re
import urllib.request

SAMPLE = re.compile(r'(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
PARTS = ("_bucket", "_sum", "_count")  # of a histogram


def fetch(address, seconds=10):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=seconds) as answer:
        kind = answer.headers["Content-Type"]
        if kind != "text/plain; version=0.0.4; charset=utf-8":
            raise AssertionError(kind)
        return answer.read().decode()


class Family:
    def __init__(self, name):
        self.name, self.kind, self.help = name, "", ""
        self.samples = []  # labels and value

    def labels(self):
        return {label for labels, _ in self.samples for label in labels} - {"le"}


class Scrape:
    def __init__(self, address, seconds=10):
        self.text = fetch(address, seconds)
        self.values = {}  # by name and labels, as in the text
        self.families = {}
        for line in self.text.splitlines():
            self._read(line)

    def _family(self, name):
        return self.families.setdefault(name, Family(name))

    def _read(self, line):
        if line.startswith("#"):
            _, what, name, text = line.split(" ", 3)
            setattr(self._family(name), {"HELP": "help", "TYPE": "kind"}[what], text)
            return
        name, labels, value = SAMPLE.fullmatch(line).group("name", "labels", "value")
        base = next((name.removesuffix(part) for part in PARTS
                     if name.endswith(part) and name.removesuffix(part) in self.families), name)
        self._family(base).samples.append((dict(LABEL.findall(labels or "")), float(value)))
        self.values[line.rsplit(" ", 1)[0]] = float(value)

    def sum(self, name, **labels):
        """Of the family's samples that have these labels."""
        return sum(value for own, value in self.families[name].samples
                   if labels.items() <= own.items())
