"""A driver for servers: the software device, with a management library beside it that says of each
device what a test wants (tests/nvml)."""
import os
import pathlib
import shutil
import tempfile

import server

VALUES = {"power": 312_400, "power_limit": 700_000, "temperature": 64, "clock1": 1980,
          "clock2": 2619, "gpu": 87, "memory": 31, "reasons": 0x1 | 0x40, "ecc0": 5, "ecc1": 2,
          "xid": 0}


class Driver:
    """`path` is what --driver gets."""

    def __init__(self, values=None):
        self.values = dict(VALUES if values is None else values)

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="longwire-driver-")
        folder = pathlib.Path(self.folder.name)
        os.chmod(folder, 0o755)
        build = server.build_folder()
        shutil.copy(build / "dist/lib/longwire/softgpu/libcuda.so.1", folder)
        shutil.copy(build / "tests/nvml/library/libnvidia-ml.so.1", folder)
        self.path = folder / "libcuda.so.1"
        self.set()
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def set(self, **values):
        """Changes values; who reads meanwhile sees the old ones or the new ones."""
        self.values.update(values)
        new = self.path.with_name("nvml.new")
        new.write_text("".join(f"{name} {value}\n" for name, value in self.values.items()))
        new.rename(self.path.with_name("nvml.txt"))
