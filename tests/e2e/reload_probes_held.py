"""Probes of the keys that bound what the server's host holds for a session."""
import pathlib
import sys

from keys_server import MIB
from reload_cases import probe

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hostile"))
import hostile_client  # noqa: E402
import hostile_code  # noqa: E402

OUT_OF_MEMORY = 2
INPUT = b"A" * (16 * MIB)


class Holder:
    """A session of the local tenant that has the server hold inputs of a link."""

    def __init__(self, case):
        self.client = hostile_client.Client(case.longwire.door, case.longwire.build)
        case.addCleanup(self.client.close)
        case.assertEqual(0, self.client.code, self.client.sentence)
        case.assertEqual(0, self.client.create_context())
        case.assertEqual(0, hostile_code.create_link(self.client, 50))
        self.number = 100

    def holds(self, inputs):
        """How many of these inputs it is allowed."""
        taken = 0
        for _ in range(inputs):
            self.number += 1
            code = hostile_code.add_to_link(self.client, 50, self.number, INPUT)
            taken += code != OUT_OF_MEMORY
        return taken


@probe("tenants.host_memory")
def hold_more_in_all_sessions(case):
    """Also of a session that runs."""
    case.longwire.reload(tenants={"local": {"host_memory": "64MiB"}})
    holder = Holder(case)
    case.assertLess(holder.holds(4), 4)
    case.longwire.reload(tenants={"local": {"host_memory": "1GiB"}})
    case.assertEqual(4, holder.holds(4))


@probe("tenants.session_host_memory")
def hold_more_in_a_session(case):
    case.longwire.reload(tenants={"local": {"session_host_memory": "64MiB"}})
    small = Holder(case)
    case.longwire.reload(tenants={"local": {"session_host_memory": "1GiB"}})
    large = Holder(case)
    case.assertLess(small.holds(4), 4)
    case.assertEqual(4, large.holds(4))


@probe("tenants.modules")
def load_more_modules(case):
    def loads(modules):
        case.longwire.reload(tenants={"local": {"modules": modules}})
        client = Holder(case).client
        return [hostile_code.load_module(client, number) for number in range(200, 220)]
    case.assertEqual([0] * 16 + [OUT_OF_MEMORY] * 4, loads(16))
    case.assertEqual([0] * 20, loads(32))
