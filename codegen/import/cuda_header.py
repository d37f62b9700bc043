"""Reads cuda.h and cudaTypedefs.h: functions with their parameters, types with kind and size."""

import dataclasses
import re
import subprocess
import tempfile
from pathlib import Path

SCALARS = {  # C spelling -> (proto type or message name, wire type)
    "int": ("int32", "i32"), "unsigned int": ("uint32", "u32"), "float": ("float", "f32"),
    "double": ("double", "f64"), "unsigned long long": ("uint64", "u64"),
    "size_t": ("size_t", "u64"), "unsigned char": ("unsigned_char", "u8"),
    "unsigned short": ("unsigned_short", "u16"),
}

# Structs whose only pointers are device pointers, which are the same on both ends.
POINTERS_ARE_DEVICE_POINTERS = ("CUstreamAttrValue", "CUkernelNodeAttrValue")

CHAPTERS = {  # doxygen group -> file of proto/calls
    "INITIALIZE": "initialization", "VERSION": "initialization", "ERROR": "error_handling",
    "DRIVER_ENTRY_POINT": "entry_points", "DEVICE": "device", "DEVICE_DEPRECATED": "device",
    "PRIMARY_CTX": "primary_context", "CTX": "context", "CTX_DEPRECATED": "context",
    "MODULE": "module", "MODULE_DEPRECATED": "module", "LIBRARY": "library", "MEM": "memory",
    "VA": "vmm", "MALLOC_ASYNC": "pools", "MULTICAST": "multicast",
    "UNIFIED": "unified_addressing", "STREAM": "stream", "EVENT": "event",
    "EXTRES_INTEROP": "external", "MEMOP": "stream_memory", "EXEC": "execution",
    "EXEC_DEPRECATED": "execution", "GRAPH": "graph", "OCCUPANCY": "occupancy",
    "TEXREF_DEPRECATED": "texture_reference", "SURFREF_DEPRECATED": "texture_reference",
    "TEXOBJECT": "texture_surface", "SURFOBJECT": "texture_surface",
    "TENSOR_MEMORY": "tensor_map", "PEER_ACCESS": "peer", "GRAPHICS": "graphics",
    "COREDUMP": "coredump", "GREEN_CONTEXTS": "green_context", "LOGS": "logs",
    "CHECKPOINT": "checkpoint",
}
# Where cuda.h's groups say nothing or something odd.
CHAPTER_BY_NAME = (
    (r"cuProfiler", "profiler"), (r"cuGetExportTable", "entry_points"), (r"cuTexRef|cuSurfRef",
    "texture_reference"), (r"cuModuleGet(Tex|Surf)Ref", "texture_reference"), (r"cuLink", "module"),
    (r"cuParamSet|cuLaunch|cuFunc", "execution"), (r"cuGraph(?!ics)", "graph"),
    (r"cuMem(cpy|set)", "memory"), (r"cuMemPrefetch", "unified_addressing"),
    (r"cuStream(Batch|Wait|Write)(Value|MemOp)", "stream_memory"), (r"cuStream", "stream"),
    (r"cuCtx(?!GetDevResource|FromGreen|EnablePeer|DisablePeer)", "context"),
    (r"cuDevice(GetProp|ComputeC)", "device"), (r"cuDeviceGet(By)?PCIBusId", "device"),
    (r"cuIpc", "ipc"),
)


@dataclasses.dataclass
class Parameter:
    name: str
    c_type: str          # without the name, one space between words, stars attached to nothing
    base: str = ""       # c_type without const and stars
    stars: int = 0
    const: bool = False


@dataclasses.dataclass
class Function:
    symbol: str
    parameters: list
    chapter: str = ""
    returns: str = "CUresult"


@dataclasses.dataclass
class CType:
    name: str
    kind: str            # SCALAR ENUM HANDLE DEVICE STRUCT HAS_POINTERS
    wire: str = ""
    bytes: int = 0


def preprocess(cuda_include):
    """cuda.h with every variant of every function under its own name."""
    result = subprocess.run(
        ["g++", "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", f"-I{cuda_include}", "-x", "c++", "-"],
        input="#include <cuda.h>\n#include <cudaProfiler.h>\n", capture_output=True, text=True,
        check=True)
    return result.stdout


def parse_parameter(text):
    text = re.sub(r"\s+", " ", text.strip())
    match = re.match(r"^(.*?)(\w+)$", text)
    c_type, name = match.group(1).strip(), match.group(2)
    c_type = re.sub(r"\s*\*\s*", "*", c_type).replace("*const", "* const")
    c_type = re.sub(r"^(struct|enum) ", "", c_type)
    c_type = re.sub(r"\bunsigned(?! (int|char|short|long))\b", "unsigned int", c_type)
    words = re.sub(r"[*]", " ", c_type).split()
    return Parameter(name, c_type, " ".join(w for w in words if w != "const"), c_type.count("*"),
                     c_type.startswith("const "))


def functions(preprocessed):
    found = {}
    for match in re.finditer(r"\bCUresult\s+(cu\w+)\s*\(([^;{}]*)\)\s*;", preprocessed):
        symbol, arguments = match.groups()
        if arguments.strip() in ("", "void"):
            parameters = []
        else:
            parameters = [parse_parameter(part) for part in arguments.split(",")]
        found.setdefault(symbol, Function(symbol, parameters))
    return found


def chapter(symbol, groups):
    """The file of proto/calls in which a function is described."""
    if symbol == "cuStreamGetGreenCtx":
        return "green_context"
    for pattern, name in CHAPTER_BY_NAME:
        if re.match(pattern, symbol):
            return name
    group = groups.get(re.sub(r"_v\d+$", "", symbol)) or groups.get(symbol)
    return CHAPTERS[group.removeprefix("CUDA_")]


def groups(cuda_include):
    """Name -> the doxygen group of cuda.h in which it is declared first."""
    result, group = {}, "CUDA_TYPES"
    for line in (Path(cuda_include) / "cuda.h").read_text().splitlines():
        defined = re.search(r"\\defgroup (\w+)", line)
        if defined:
            group = defined.group(1)
        declared = re.match(r"\s*CUresult CUDAAPI (cu\w+)\(", line)
        if declared:
            result.setdefault(declared.group(1), group)
    return result


def thresholds(cuda_include):
    """(base name, "" | "ptds" | "ptsz") -> sorted versions at which a variant was introduced."""
    result = {}
    for header in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        text = (Path(cuda_include) / header).read_text()
        for name, version, mode in re.findall(r"PFN_(cu\w+?)_v(\d+)(?:_(ptds|ptsz))?\)", text):
            result.setdefault((name, mode), set()).add(int(version))
    return {key: sorted(value) for key, value in result.items()}


class Types:
    """Kinds and sizes of the C types that functions use."""

    def __init__(self, preprocessed, cuda_include, names):
        self.text = re.sub(r"\s+", " ", preprocessed)
        self.sizes = self._measure(sorted(names), cuda_include)
        self.types = {name: self._classify(name) for name in sorted(names)}

    def _measure(self, names, cuda_include):
        lines = "\n".join(f'  printf("%s|%zu\\n", "{n}", sizeof({n}));' for n in names)
        source = ("#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include "
                  f"<cudaProfiler.h>\n#include <cstdio>\nint main() {{\n{lines}\n}}\n")
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "sizes"
            subprocess.run(["g++", f"-I{cuda_include}", "-x", "c++", "-", "-o", str(program)],
                           input=source, text=True, check=True)
            output = subprocess.run([str(program)], capture_output=True, text=True).stdout
        return {name: int(size) for name, size in
                (line.rsplit("|", 1) for line in output.splitlines())}

    def _resolve(self, name):
        """Follows `typedef other name;` and says (what, detail)."""
        if name in SCALARS:
            return "scalar", SCALARS[name][1]
        direct = {"cuuint64_t": "u64", "cuuint32_t": "u32", "uint64_t": "u64", "uint32_t": "u32",
                  "unsigned long": "u64", "char": "u8", "long long": "i64"}
        if name in direct:
            return "scalar", direct[name]
        if re.search(rf"typedef enum \w+ \{{[^}}]*\}} {name};", self.text):
            return "enum", name
        if name == "CUdevResourceType":  # its enum has another name
            return "enum", name
        if re.search(rf"\benum {name} \{{", self.text) or re.search(
                rf"typedef enum {name}_enum ", self.text):
            return "enum", name
        if re.search(rf"typedef struct \w+ \*\s?{name};", self.text):
            return "handle", name
        if re.search(rf"typedef [^;{{}}]*\(\s?\*\s?{name}\)", self.text):
            return "function", name
        body = self._body(name)
        if body is not None:
            return "struct", body
        alias = re.search(rf"typedef ((?:struct |enum |const )*[\w ]+?) {name};", self.text)
        if alias:
            return self._resolve(re.sub(r"^(struct|enum) ", "", alias.group(1).strip()))
        return "unknown", name

    def _body(self, name):
        # The braces that end in "} name;" or begin with "struct name {".
        end = re.search(rf"\}} {name};", self.text)
        if end:
            depth, at = 0, end.start()
            while True:
                depth += {"}": 1, "{": -1}.get(self.text[at], 0)
                if depth == 0:
                    return self.text[at:end.start() + 1]
                at -= 1
        begin = re.search(rf"(?:struct|union) {name} \{{", self.text)
        if begin:
            depth, at = 0, begin.end() - 1
            while True:
                depth += {"{": 1, "}": -1}.get(self.text[at], 0)
                if depth == 0:
                    return self.text[begin.end() - 1:at + 1]
                at += 1
        return None

    def _has_pointer(self, body, seen):
        if "*" in body:
            return True
        for word in set(re.findall(r"\b(?:CU|cu)\w+", body)) - seen:
            seen.add(word)
            what, detail = self._resolve(word)
            if what in ("handle", "function"):
                return True
            if what == "struct" and self._has_pointer(detail, seen):
                return True
        return False

    def _classify(self, name):
        if name in ("CUdevice", "CUdevice_v1"):
            return CType(name, "DEVICE")
        what, detail = self._resolve(name)
        if what == "scalar":
            return CType(name, "SCALAR", wire=detail)
        if what == "enum":
            return CType(name, "ENUM")
        if what == "handle":
            return CType(name, "HANDLE")
        if name in POINTERS_ARE_DEVICE_POINTERS:
            return CType(name, "STRUCT", bytes=self.sizes[name])
        if what == "struct" and not self._has_pointer(detail, {name}):
            return CType(name, "STRUCT", bytes=self.sizes[name])
        return CType(name, "HAS_POINTERS")
