"""The probes of what decides who may use a device: the scheduler's keys, class and weight."""
import server
from reload_cases import probe, start

# Of a kernel: some 20 ms on the software device.
ITERATIONS = 1000


def queue(case, tenant):
    """Starts a program that always has two kernels queued."""
    process = case.longwire.popen(tenant, case.longwire.build / "bench" / "tenant_load", "batch",
                                  ITERATIONS, 600)
    case.addCleanup(process.communicate)
    case.addCleanup(process.kill)
    server.wait_for(lambda: seats(case).get(tenant, {}).get("busy"), 20, f"work of {tenant}")


def work(case, tenant):
    """The same, and some have run."""
    queue(case, tenant)
    server.wait_for(lambda: seats(case)[tenant].get("calls", 0) > 2, 20, f"{tenant} at work")


def seats(case):
    """Tenant → what its gate says."""
    return {one["tenant"]: one["seats"][0] for one in case.status()["sessions"]
            if one.get("seats")}


def limited(case):
    return sorted(name for name, seat in seats(case).items() if seat.get("limited"))


def count(case, what):
    return case.status()["scheduler"].get(what, 0)


def expect_more(case, what, number):
    before = count(case, what)
    server.wait_for(lambda: count(case, what) >= before + number, 20, f"{number} {what}")


@probe("scheduler.policy")
def change_policy(case):
    work(case, "alpha")
    work(case, "beta")
    case.assertEqual([], limited(case))
    case.longwire.reload(scheduler={"policy": "weighted_fair"})
    case.assertEqual(["alpha", "beta"], limited(case))
    expect_more(case, "turns", 3)
    case.longwire.reload(scheduler={"policy": "strict_priority"})
    case.assertEqual([], limited(case))


@probe("scheduler.turn")
def change_turn(case):
    """It holds for the turn that is under way, too: else twenty would take minutes."""
    case.longwire.reload(scheduler={"policy": "weighted_fair", "turn": "10s",
                                    "longest_wait": "10s"})
    queue(case, "alpha")
    queue(case, "beta")
    case.longwire.reload(scheduler={"policy": "weighted_fair", "turn": "1ms"})
    expect_more(case, "turns", 20)


@probe("scheduler.longest_wait")
def change_longest_wait(case):
    """It holds for the turn that waits, too: three such waits would take minutes."""
    classes = {"beta": {"priority": "latency_critical"}}
    case.longwire.reload(scheduler={"longest_wait": "1min"}, tenants=classes)
    work(case, "beta")
    queue(case, "alpha")
    case.longwire.reload(scheduler={"longest_wait": "1ms", "turn": "1ms"}, tenants=classes)
    expect_more(case, "forced", 3)


@probe("scheduler.enabled")
def switch_off(case):
    case.longwire.reload(scheduler={"policy": "weighted_fair"})
    work(case, "alpha")
    work(case, "beta")
    case.assertEqual(["alpha", "beta"], limited(case))
    case.longwire.reload(scheduler={"policy": "weighted_fair", "enabled": False})
    case.assertEqual([], limited(case))
    case.assertFalse(any(seat.get("closed") for seat in seats(case).values()))
    before = count(case, "turns")
    case.longwire.reload(scheduler={"policy": "weighted_fair"})
    case.assertEqual(["alpha", "beta"], limited(case))
    server.wait_for(lambda: count(case, "turns") > before, 20, "a turn")


@probe("scheduler.short_time_slice")
def change_time_slice(case):
    classes = {"beta": {"priority": "latency_critical"}}
    case.longwire.reload(tenants=classes)
    start(case, "alpha")
    start(case, "beta")

    def slices():
        return {name: seat.get("time_slice_microseconds", 0) for name, seat in seats(case).items()}
    case.assertEqual({"alpha": 50, "beta": 0}, slices())
    case.longwire.reload(tenants=classes, scheduler={"short_time_slice": False})
    case.assertEqual({"alpha": 0, "beta": 0}, slices())


def awake(case, what):
    return {one["tenant"]: one.get(what, 0) for one in case.status()["sessions"]}


@probe("tenants.awake")
def change_awake(case):
    start(case, "alpha")
    start(case, "beta")
    case.assertEqual({"alpha": 0, "beta": 0}, awake(case, "awake_microseconds"))
    case.longwire.reload(tenants={"beta": {"priority": "latency_critical", "awake": "100ms"}})
    case.assertEqual({"alpha": 0, "beta": 100000}, awake(case, "awake_microseconds"))


@probe("scheduler.awake_cores")
def change_awake_cores(case):
    stays = {"beta": {"priority": "latency_critical", "awake": "1ms"}}
    case.longwire.reload(tenants=stays)
    start(case, "beta")
    case.assertTrue(awake(case, "awake_granted")["beta"])
    case.longwire.reload(tenants=stays, scheduler={"awake_cores": 1})
    case.assertFalse(awake(case, "awake_granted")["beta"])


@probe("tenants.priority")
def change_class(case):
    start(case, "alpha")
    start(case, "beta")
    case.assertEqual([], limited(case))
    case.longwire.reload(tenants={"beta": {"priority": "latency_critical"}})
    case.assertEqual(["alpha"], limited(case))
    case.longwire.reload(tenants={"alpha": {"priority": "latency_critical"}})
    case.assertEqual(["beta"], limited(case))


@probe("tenants.weight")
def change_weight(case):
    """Seconds of the device, and not what is due."""
    fair = {"policy": "weighted_fair"}
    case.longwire.reload(scheduler=fair)
    work(case, "alpha")
    work(case, "beta")
    case.longwire.reload(scheduler=fair, tenants={"beta": {"weight": 1000}})

    def seconds():
        return [seats(case)[name].get("gpu_seconds", 0) for name in ("alpha", "beta")]
    begun = [seconds()]

    def gets_most():
        alpha, beta = (now - then for now, then in zip(seconds(), begun[0]))
        if alpha + beta < 1:
            return False
        if beta > 5 * alpha:
            return True
        begun[0] = seconds()  # what was owed before may have been paid
        return False
    server.wait_for(gets_most, 20, "nearly all of the device")
