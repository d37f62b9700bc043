"""The relay program of this folder: a long or a narrow wire to a port of this host."""
import subprocess


class RelayTo:
    """Passes connections to 127.0.0.1:port on while it is entered; `address` is where to connect.
    `rtt_ms`: round-trip time in milliseconds; `gbit`: Gbit/s each way, 0 for no limit."""

    def __init__(self, build, port, rtt_ms=0, gbit=0):
        self.command = [build / "bench" / "relay", "--to", str(port), "--rtt", str(rtt_ms * 1000),
                        "--gbit", str(gbit)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        port = self.process.stdout.readline().strip()
        if not port:
            raise SystemExit(f"{self.command} did not start")
        self.address = f"127.0.0.1:{port}"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()  # it ends with its input
        self.process.wait(10)
        self.process.stdout.close()
