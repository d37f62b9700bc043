"""Members of etcd on free loopback ports, and what is in them, by etcd's JSON gateway."""
import base64
import json
import pathlib
import signal
import subprocess
import tempfile
import urllib.request

import server

PREFIX = "longwire/"


def encode(text):
    return base64.b64encode(text.encode()).decode()


def decode(text):
    return base64.b64decode(text or "").decode()


class Member:
    def __init__(self, name, folder):
        self.name = name
        self.folder = folder / name
        self.port = server.free_port()
        self.peer_port = server.free_port()
        self.host = "127.0.0.1"
        self.address = f"{self.host}:{self.port}"
        self.process = None

    def prefix(self):
        """Words before its command."""
        return []

    def peer(self):
        return f"http://{self.host}:{self.peer_port}"

    def start(self, cluster, papers=None):
        """papers: a folder of `longwire cert`; clients then need a certificate."""
        kind = "https" if papers else "http"
        client, peer = f"{kind}://{self.address}", self.peer()
        tls = ["--cert-file", papers / "127.0.0.1.crt", "--key-file", papers / "127.0.0.1.key",
               "--trusted-ca-file", papers / "ca.crt", "--client-cert-auth"] if papers else []
        with open(f"{self.folder}.log", "a") as log:
            self.process = subprocess.Popen(
                [*self.prefix(), "etcd", "--name", self.name, "--data-dir", self.folder,
                 "--listen-client-urls", client, "--advertise-client-urls", client,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", cluster, "--logger", "zap", *tls],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Members:
    def __init__(self, count=3):
        self.count = count

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="longwire-etcd-")
        place = pathlib.Path(self.folder.name)
        self.members = [self.member(f"m{i}", place) for i in range(self.count)]
        for member in self.members:
            member.start(self.cluster())
        server.wait_for(self.answers, 30, "etcd")
        return self

    def __exit__(self, *_):
        for member in self.members:
            if member.process.poll() is None:
                member.process.send_signal(signal.SIGCONT)
                member.kill()
        self.folder.cleanup()

    def member(self, name, place):
        return Member(name, place)

    def cluster(self):
        return ",".join(f"{one.name}={one.peer()}" for one in self.members)

    def addresses(self):
        return [one.address for one in self.members]

    def answers(self):
        try:
            self.ask("kv/range", {"key": encode("?")})
        except OSError:
            return False
        return True

    def ask(self, method, request, timeout=3):
        """Of the first member that answers."""
        problem = None
        for member in self.members:
            try:
                with urllib.request.urlopen(f"http://{member.address}/v3/{method}",
                                            json.dumps(request).encode(), timeout) as answer:
                    return json.loads(answer.read())
            except OSError as error:
                problem = error
        raise problem

    def leader(self):
        for member in self.members:
            try:
                with urllib.request.urlopen(f"http://{member.address}/v3/maintenance/status",
                                            b"{}", 3) as answer:
                    status = json.loads(answer.read())
            except OSError:
                continue
            if status.get("leader") == status["header"]["member_id"]:
                return member
        raise AssertionError("etcd has no leader")

    def keys(self, folder=""):
        """Key without the prefix → its value, read as JSON where it is some."""
        start = PREFIX + folder
        end = start[:-1] + chr(ord(start[-1]) + 1)
        found = self.ask("kv/range", {"key": encode(start), "range_end": encode(end)})
        return {decode(one["key"])[len(PREFIX):]: plain(decode(one.get("value")))
                for one in found.get("kvs", [])}

    def put(self, key, value):
        self.ask("kv/put", {"key": encode(PREFIX + key), "value": encode(json.dumps(value))})

    def delete(self, key):
        self.ask("kv/deleterange", {"key": encode(PREFIX + key)})

    def history(self, first=1):
        """All changes since that revision: (revision, key, value or None) in order."""
        now = int(self.ask("kv/range", {"key": encode("?")})["header"]["revision"])
        end = PREFIX[:-1] + chr(ord(PREFIX[-1]) + 1)
        request = {"create_request": {"key": encode(PREFIX), "range_end": encode(end),
                                      "start_revision": first}}
        # A last change, so that the stream says when it has said all.
        self.put("end-of-history", {})
        changes = []
        alive = next(one for one in self.members if one.process.poll() is None)
        with urllib.request.urlopen(f"http://{alive.address}/v3/watch",
                                    json.dumps(request).encode(), 20) as stream:
            for line in stream:
                for event in json.loads(line)["result"].get("events", []):
                    kv = event["kv"]
                    revision = int(kv["mod_revision"])
                    if revision > now:
                        return changes
                    gone = event.get("type") == "DELETE"
                    changes.append((revision, decode(kv["key"])[len(PREFIX):],
                                    None if gone else plain(decode(kv.get("value")))))
        raise AssertionError("etcd's history ended early")


def plain(text):
    try:
        return json.loads(text)
    except ValueError:
        return text
