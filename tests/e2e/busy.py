"""A server with metrics that is at work: two devices, TLS, a session of each kind of tenant, and
one that is refused."""
import subprocess

import server
import tenants

TENANTS = {"operator": {"admin": True},
           "research": {"weight": 3, "memory": "1GiB", "sessions": 1},
           "serving": {"priority": "latency_critical", "awake": "1ms"}}


class BusyServer(tenants.TenantServer):
    def __init__(self, driver="software", **settings):
        self.metrics = f"127.0.0.1:{server.free_port()}"
        super().__init__(TENANTS, {"metrics": self.metrics, **settings}, software_devices=2,
                         driver=str(driver))

    def __enter__(self):
        super().__enter__()
        server.wait_for(lambda: "ready" in self.log_tail(), 20, "the daemon")
        return self

    def hold(self, case, tenant):
        """Starts a session that computes until the test's end; `case`: a test or its class."""
        process = subprocess.Popen(
            self.command(self.program("steady.static"), "hold"), env=self.environment_of(tenant),
            stdout=subprocess.PIPE, text=True)
        clean_up = getattr(case, "addClassCleanup", case.addCleanup)
        clean_up(process.communicate)
        clean_up(process.kill)
        if server.next_line(process) != "READY\n":
            raise AssertionError(self.log_tail())

    def make_busy(self, case):
        for tenant in ("research", "serving"):
            self.hold(case, tenant)
        self.be_refused()

    def be_refused(self):
        """Asks for a second session of the tenant that may have one."""
        result = self.run_as("research", self.program("allocate.static"))
        if "the tenant 'research' has 1 sessions already; its limit is 1" not in result.err:
            raise AssertionError(result)
