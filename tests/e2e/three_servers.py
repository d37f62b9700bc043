"""Three servers and a program that has devices of all of them, on machines of their own."""
import server
from bridges_network import BYTES, BridgesTest


class ThreeTest(BridgesTest):
    names = ("a", "b", "c")

    def run_over(self, names, program, *arguments, **more):
        one = self.servers["a"]
        command = one.command(one.program(program), *map(str, arguments),
                              server=self.addresses(names))
        return server.run(command, one.environment(LONGWIRE_ACROSS=1, **more), 120)

    def start_copies(self, count):
        process = server.start_session(self.command("far", count, BYTES), self.environment())
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), self.logs())
        return process

    def expect_end(self, process, seconds=100):
        result = server.finish(process, seconds)
        self.assertEqual((0, "PASS across_copies\n"), (result.code, result.out),
                         f"{result}\n{self.logs()}")
        return result
