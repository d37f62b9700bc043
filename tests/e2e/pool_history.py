"""Checks the history of a pool's keys, revision by revision.

At every revision: cap/H is the sum of H's claims, and no more than there is; a session has one
claim, at the host that sess/N names; a claim of a host that is not in the pool goes only when the
host joins anew, or is forgotten; a tenant's sessions, and the parts of its memory, whose sum ten/T
has, never grow beyond its limits, which are those of the configuration; a device that a
session has to itself has no other claim; a session that moves has both devices before it has one
alone; the claims of a program on several hosts come in one revision; a claim of a session that
comes from another host is made while that one has the session's, and of one session there are never
two such that are open."""
import copy
import itertools


class Checker:
    """killed: hosts whose daemon was killed at some time; forgotten: by an administrator. limits:
    tenant → sessions and bytes that pool.limits gives it: what etcd has of that is not believed."""

    def __init__(self, killed=(), forgotten=(), limits=None):
        self.limits = dict(limits or {})
        self.killed = set(killed)
        self.forgotten = set(forgotten)
        self.keys = {}
        self.entries = {}  # host → incarnation of its last entry
        self.faults = []

    def with_planted(self, *changes):
        """The faults that it finds in what came so far and then, as one revision, in these: (key,
        value or None)."""
        other = copy.deepcopy(self)
        other.faults = []
        return other.replay([(0, key, value) for key, value in changes])

    def replay(self, changes):
        for revision, group in itertools.groupby(changes, key=lambda one: one[0]):
            self.step(revision, list(group))
        return self.faults

    def fault(self, revision, sentence):
        self.faults.append(f"revision {revision}: {sentence}")

    def step(self, revision, changes):
        before = dict(self.keys)
        for _, key, value in changes:
            if value is None:
                self.keys.pop(key, None)
            else:
                self.keys[key] = value
            if key.startswith("host/") and value is not None:
                self.entries[key[5:]] = int(value["incarnation"])
        touched = {key.split("/")[1] for _, key, _ in changes
                   if key.startswith(("cap/", "claim/"))}
        for host in touched:
            self.check_books(revision, host)
            self.check_alone(revision, host)
            self.check_goes(revision, host, before)
            self.check_moves(revision, host, before)
        for key in {key for _, key, value in changes if value is not None} - set(before):
            self.check_places(revision, key)
            self.check_from(revision, key, before)
        if any(key.startswith(("sess/", "claim/")) for _, key, _ in changes):
            self.check_owners(revision, changes, before)
            self.check_open_once(revision)
            self.check_sessions(revision, before)
        for tenant in {key.split("/")[1] for _, key, _ in changes if key.startswith("ten/")}:
            self.check_limits(revision, tenant)
            self.check_parts(revision, tenant, before)

    def check_limits(self, revision, tenant):
        """Only the placer writes them, when it becomes one, and hosts keep to them."""
        record = self.keys.get(f"ten/{tenant}", {})
        said = (int(record.get("sessions", 0)), int(record.get("memory", 0)))
        if tenant in self.limits and said != self.limits[tenant]:
            self.fault(revision, f"the limits of tenant {tenant} in etcd are {said}, those of the "
                                 f"configuration {self.limits[tenant]}")

    def claims(self, host, keys=None):
        start = f"claim/{host}/"
        return {key[len(start):]: value for key, value in (keys or self.keys).items()
                if key.startswith(start)}

    def check_sessions(self, revision, before):
        limits = {key[4:]: int(value.get("sessions", 0)) for key, value in self.keys.items()
                  if key.startswith("ten/") and key.count("/") == 1}
        limits |= {tenant: sessions for tenant, (sessions, _) in self.limits.items()}
        for tenant, limit in limits.items():
            was, now = ([one for key, one in keys.items()
                         if key.startswith("claim/") and one["tenant"] == tenant and
                         self.start_of(one) not in keys]  # a session that moves counts once
                        for keys in (before, self.keys))
            if limit and len(now) > limit and len(now) > len(was):
                self.fault(revision, f"tenant {tenant} has {len(now)} sessions of {limit}")
            if limit and any(one.get("local") for one in now):
                self.fault(revision, f"a host opened a session of {tenant} by itself, whose "
                                     f"sessions are counted over the pool")

    def parts(self, tenant, keys):
        start = f"ten/{tenant}/"
        return {key[len(start):]: int(value.get("bytes", 0)) for key, value in keys.items()
                if key.startswith(start)}

    def check_parts(self, revision, tenant, before):
        record = self.keys.get(f"ten/{tenant}", {})
        was, now = self.parts(tenant, before), self.parts(tenant, self.keys)
        if int(record.get("parts", 0)) != sum(now.values()):
            self.fault(revision, f"tenant {tenant} counts parts of {record.get('parts')} bytes, "
                                 f"hosts have {now}")
        limit = self.limits.get(tenant, (0, int(record.get("memory", 0))))[1]
        if limit and sum(now.values()) > limit and sum(now.values()) > sum(was.values()):
            self.fault(revision, f"tenant {tenant} has {now}, more than {limit} bytes")

    def check_books(self, revision, host):
        claims = self.claims(host)
        capacity = self.keys.get(f"cap/{host}")
        if capacity is None:
            if claims:
                self.fault(revision, f"{host} has {len(claims)} claims and no capacity")
            return
        if capacity["sessions"] != len(claims):
            self.fault(revision, f"{host} counts {capacity['sessions']} sessions and has "
                                 f"{len(claims)} claims")
        if capacity["sessions"] > capacity["sessionsLimit"]:
            self.fault(revision, f"{host} has {capacity['sessions']} sessions of "
                                 f"{capacity['sessionsLimit']}")
        for device in capacity["devices"]:
            total = int(device["total"])
            of = [min(int(one["bytes"]), total) for one in claims.values()
                  if device["ordinal"] in one["devices"]]
            name = f"device {device['ordinal']} of {host}"
            if int(device["bytes"]) != sum(of) or device["sessions"] != len(of):
                self.fault(revision, f"{name} counts {device['bytes']} bytes of "
                                     f"{device['sessions']} sessions, its claims {sum(of)} of "
                                     f"{len(of)}")
            if sum(of) > total:
                self.fault(revision, f"{name} is promised {sum(of)} bytes of {total}")

    def check_alone(self, revision, host):
        claims = self.claims(host)
        for device in self.keys.get(f"cap/{host}", {}).get("devices", ()):
            of = [one for one in claims.values() if device["ordinal"] in one["devices"]]
            alone = any(one.get("alone") for one in of)
            name = f"device {device['ordinal']} of {host}"
            if alone and len(of) > 1:
                self.fault(revision, f"{name} is one program's alone and has {len(of)} claims")
            if alone != bool(device.get("alone")):
                self.fault(revision, f"{name} is said to be {'' if alone else 'not '}shared")

    def check_places(self, revision, key):
        places = self.keys.get(key, {}).get("places", ()) if key.startswith("claim/") else ()
        for place in places:
            other = self.keys.get(f"claim/{place['host']}/{place['number']}")
            if other is None or len(other["devices"]) != place["devices"] or not other["alone"]:
                self.fault(revision, f"{key} is there without its place at {place['host']}")

    @staticmethod
    def start_of(claim):
        """The key of the claim from which the session comes."""
        start = claim.get("from")
        return start and f"claim/{start['host']}/{start['number']}"

    def check_from(self, revision, key, before):
        claim = self.keys.get(key, {}) if key.startswith("claim/") else {}
        start = self.start_of(claim)
        if start is None or f"host/{key.split('/')[1]}" not in before:
            return  # or the host joins anew and says what is so
        whose = [before.get(start, {}).get(what) for what in ("tenant", "identity")]
        if whose != [claim["tenant"], claim["identity"]]:
            self.fault(revision, f"{key} comes from {start}, which is of {whose}")

    def check_open_once(self, revision):
        starts = [self.start_of(claim) for key, claim in self.keys.items()
                  if key.startswith("claim/") and claim.get("state") == "OPEN"]
        for start in set(starts) - {None}:
            if starts.count(start) > 1:
                self.fault(revision, f"the session of {start} is open at several hosts")

    def check_goes(self, revision, host, before):
        """While its daemon is dead nobody gives back for it; when it joins anew, its incarnation
        is a later one than that of its last entry."""
        gone = set(self.claims(host, before)) - set(self.claims(host))
        if not gone or host not in self.killed or f"host/{host}" in before:
            return
        capacity = self.keys.get(f"cap/{host}")
        joins = capacity and int(capacity["incarnation"]) > self.entries.get(host, 0)
        if not joins and host not in self.forgotten:
            self.fault(revision, f"{host} is not in the pool and lost the claims {sorted(gone)}")

    def check_moves(self, revision, host, before):
        """But for a host that joins anew and says what is so: nothing is placed there then."""
        was, now = self.claims(host, before), self.claims(host)
        if f"host/{host}" not in before:
            return
        for number in set(was) & set(now):
            if not set(was[number]["devices"]) & set(now[number]["devices"]):
                self.fault(revision, f"session {number} of {host} went from devices "
                                     f"{was[number]['devices']} to {now[number]['devices']} "
                                     "without both")

    def check_owners(self, revision, changes, before):
        for _, key, value in changes:
            if key.startswith("sess/") and value is not None:
                earlier = before.get(key)
                if earlier and earlier["host"] != value["host"] and \
                        int(value["generation"]) <= int(earlier["generation"]):
                    self.fault(revision, f"{key} went from {earlier['host']} to {value['host']}")
        owners = {}
        for key in self.keys:
            if key.startswith("claim/"):
                _, host, number = key.split("/")
                owners.setdefault(number, []).append(host)
        for number, hosts in owners.items():
            session = self.keys.get(f"sess/{number}")
            if len(hosts) != 1 or session is None or session["host"] != hosts[0]:
                self.fault(revision, f"session {number} has claims at {hosts}, and its owner is "
                                     f"{session and session['host']}")
        for key, value in self.keys.items():
            if key.startswith("sess/") and key[5:] not in owners:
                self.fault(revision, f"{key} is of {value['host']}, where there is no claim")
