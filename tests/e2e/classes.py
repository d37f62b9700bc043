"""A server on which a policy says who is latency critical: those whom the map of time_slices.c
names; all others are best effort, whatever the configuration says."""
import subprocess

import server
import tenants

OBJECTS = server.build_folder() / "policy" / "objects"
TOLD = "time_slices"


class PolicyServer(tenants.TenantServer):
    """One of its tenants is called operator and is an administrator."""

    def policy(self, *words):
        verb, *rest = map(str, words)
        result = server.run([self.dist / "bin" / "longwire", "policy", verb, *rest,
                             "--server", self.address], self.environment_of("operator"))
        if result.code != 0:
            raise AssertionError(f"longwire policy {verb}: {result.err}\n{self.log_tail()}")

    def load(self):
        self.policy("load", OBJECTS / f"{TOLD}.o")

    def unload(self):
        self.policy("unload", TOLD)

    def say(self, tenant, critical):
        """From now on: a reload has the policy asked again about sessions that run."""
        self.policy("maps", TOLD, "critical", "--set", f"tenant:{tenant}={int(critical)}")
        self.reload()

    def reload(self):
        result = self.cli("admin", "reload")
        if result.code != 0:
            raise AssertionError(f"longwire admin reload: {result.err}\n{self.log_tail()}")

    def tenant(self, name):
        return next(one for one in self.status_as("operator")["tenants"] if one["name"] == name)

    def hold(self, test, tenant, program="hold_session.static", *arguments):
        """A session of the tenant that stays until the test ends."""
        process = subprocess.Popen(
            self.command(self.program(program), *arguments), env=self.environment_of(tenant),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        test.addCleanup(process.communicate)
        test.addCleanup(process.kill)
        test.assertEqual("READY\n", server.next_line(process), self.log_tail())
        return process
