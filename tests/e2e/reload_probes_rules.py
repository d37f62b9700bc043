"""Probes for rules, of everybody and of a tenant: each is tried at both places."""
import time

from reload_cases import probe

SHAPE = "_Z5ShapePi"


def keys(*names):
    return [f"{place}.{name}" for place in ("rules", "tenants.rules") for name in names]


def told(case, rules, *words, place, program="under_rules.static"):
    """What a new program of alpha prints when these rules have been read."""
    changes = {"rules": rules} if place == "rules" else {"tenants": {"alpha": {"rules": rules}}}
    said = case.longwire.reload(**(changes if rules else {}))
    if rules:
        case.assertRegex(said, r"rules: changed|tenants: changed")
    result = case.longwire.run_as("alpha", case.longwire.program(program), *words)
    return result.out


def at_both(test):
    """The probe at each place, with none in force before."""
    def both(case):
        for place in ("rules", "tenants"):
            with case.subTest(place):
                case.longwire.reload()
                test(case, place)
    both.__name__ = test.__name__
    return both


@probe(*keys("name", "program", "kernel", "deny"))
@at_both
def deny_launches(case, place):
    rule = {"name": "it", "program": "under_*", "kernel": "*Add*", "deny": "cuLaunchKernel"}
    text = told(case, [rule], "shape", "add", "log", place=place)
    case.assertIn("shape cudaSuccess 4 64", text)
    case.assertIn("add cudaErrorNotPermitted 0", text)
    case.assertIn("denied by rule 'it'", text)
    for other in ({"program": "other"}, {"kernel": "*Other*"}):
        text = told(case, [{**rule, **other}], "add", place=place)
        case.assertIn("add cudaSuccess 5050", text)
    case.assertIn("add cudaSuccess 5050", told(case, [], "add", place=place))


@probe(*keys("module"))
@at_both
def deny_modules(case, place):
    rule = {"deny": "cuModuleLoad", "module": "*"}
    case.assertIn("NotPermitted", told(case, [rule], "shape", place=place))
    text = told(case, [{**rule, "module": "0123456789abcdef*"}], "shape", place=place)
    case.assertIn("shape cudaSuccess 4 64", text)


@probe(*keys("launch.grid", "launch.block", "launch.unsafe"))
@at_both
def change_shapes(case, place):
    launch = {"grid": "2", "block": "32", "unsafe": True}
    text = told(case, [{"kernel": SHAPE, "launch": launch}], "shape", place=place)
    case.assertIn("shape cudaSuccess 2 32", text)


@probe(*keys("launch.priority", "launch.shared_memory", "launch.clusters", "jit.optimization",
             "jit.target", "jit.cache", "jit.registers"))
@at_both
def change_attributes(case, place):
    """The software device shows no difference; server/worker/code/session_rules_test.cc sees that
    the driver gets them."""
    launch = {"priority": 1, "shared_memory": 20, "clusters": "spread_out"}
    jit = {"optimization": 1, "target": 90, "cache": "l2", "registers": 32}
    text = told(case, [{"launch": launch, "jit": jit}], "shape", "add", place=place)
    case.assertIn("shape cudaSuccess 4 64", text)
    case.assertIn("add cudaSuccess 5050", text)


@probe(*keys("validate"))
@at_both
def check_addresses(case, place):
    case.assertIn("beyond cudaErrorInvalidValue",
                  told(case, [{"validate": True}], "beyond", place=place))
    case.assertIn("beyond cudaErrorIllegalAddress", told(case, [], "beyond", place=place))


@probe(*keys("retry.count", "retry.back_off"))
@at_both
def try_again(case, place):
    """An allocation that never succeeds takes as long as all its pauses."""
    def seconds(rules):
        begun = time.monotonic()
        text = told(case, rules, str(1 << 40), place=place, program="allocate.static")
        case.assertIn("cudaErrorMemoryAllocation", text)
        return time.monotonic() - begun
    case.assertGreater(seconds([{"retry": {"count": 2, "back_off": "700ms"}}]), 2.1)
