"""What a session takes along beside memory, streams and modules: graphs, arrays with textures and
surfaces, further contexts, linked code, memory that is mapped nowhere. Each kind is used between
moves and compared with a model on the host; and a value that the driver made and that is another
one in the new worker refuses the move."""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import checkpoint_files
import server

SEED = int(os.environ.get("LONGWIRE_SEED", "0")) or random.randrange(1 << 30)
# Each with calls whose answers the driver chose and the program has.
KINDS = {"graph": ("cuGraphCreate", "lwCaptureEnd", "lwGraphInstantiate", "lwGraphAddKernel"),
         "texture": ("lwTextureCreate", "lwSurfaceCreate", "cuArray3DCreate_v2",
                     "cuMipmappedArrayCreate"),
         "context": ("lwModuleLoad",),
         "link": ("lwModuleLoad",)}


class MovingKindsTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(SEED)
        print(f"LONGWIRE_SEED={SEED}", file=sys.stderr)
        self.longwire = server.Server(software_devices=2)
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="longwire-kept-"))
        self.longwire.config = f"checkpoint_dir: {folder}/sessions\n"
        self.enterContext(self.longwire)
        self.kept = pathlib.Path(folder) / "sessions"

    def start(self, kind):
        program = subprocess.Popen(
            self.longwire.command(self.longwire.program("driver_carried.driver"), kind),
            env=self.longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual("READY\n", server.next_line(program), self.longwire.log_tail())
        return program

    def step(self, program):
        program.stdin.write("step\n")
        program.stdin.flush()
        said = server.next_line(program)
        self.assertEqual("RIGHT\n", said, self.longwire.log_tail())

    def admin(self, *words):
        return self.longwire.cli("admin", *map(str, words))

    def does(self, *words):
        done = self.admin(*words)
        self.assertEqual(0, done.code, (done, self.longwire.log_tail()))

    def session(self):
        (session,) = self.longwire.status()["sessions"]
        return session["id"], session["seats"][0].get("device", 0)

    def ends(self, program):
        out, err = program.communicate(timeout=60)
        self.assertEqual((0, "PASS driver_carried\n", ""), (program.returncode, out, err))
        server.wait_for(self.longwire.is_unused, 10, "the memory of all workers")

    def there_and_back(self, kind):
        program = self.start(kind)
        for turn in range(2):
            session, here = self.session()
            self.does("migrate", session, 1 - here)
            self.step(program)
            name = f"{kind}-{turn}"
            self.does("checkpoint", self.session()[0], name)
            self.does("restore", name)
            self.step(program)
            self.step(program)
        self.ends(program)

    def test_graphs(self):
        self.there_and_back("graph")

    def test_arrays_textures_and_surfaces(self):
        self.there_and_back("texture")

    def test_further_contexts(self):
        self.there_and_back("context")

    def test_linked_code(self):
        self.there_and_back("link")

    def test_memory_that_is_mapped_nowhere(self):
        self.there_and_back("unmapped")

    def test_objects_that_come_and_go(self):
        program = self.start("passing")
        self.step(program)
        session, here = self.session()
        self.does("migrate", session, 1 - here)
        self.step(program)
        self.does("migrate", self.session()[0], here)
        self.ends(program)

    def plant(self, file, place):
        """One bit of that answer is another one, with digests that are right."""
        ticket = next((file.parent / ".suspended").iterdir())
        before = [(one, one.read_bytes()) for one in (file, ticket)]

        def put(contents):
            for one, content in contents:
                one.write_bytes(content)
            self.longwire.end_daemon()
            self.longwire.start_daemon()
        planted, digest = checkpoint_files.flip(before[0][1], place)
        put([(file, planted),
             (ticket, checkpoint_files.ticket_for(before[1][1], before[0][1], digest))])
        return lambda: put(before)

    def refuses_other_values(self, kind):
        program = self.start(kind)
        self.step(program)
        self.does("checkpoint", self.session()[0], kind)
        file = self.kept / kind
        answers = checkpoint_files.answers(file.read_bytes())
        for call in KINDS[kind]:
            number = checkpoint_files.number_of(call)
            places = [one for one in answers if one[1] == number]
            self.assertNotEqual([], places, call)
            take_back = self.plant(file, self.random.choice(places))
            refused = self.admin("restore", kind)
            self.assertEqual(1, refused.code)
            self.assertIn(f"{call} answers otherwise there", refused.err)
            take_back()
        self.does("restore", kind)
        self.step(program)
        self.ends(program)

    def test_another_value_of_a_graph(self):
        self.refuses_other_values("graph")

    def test_another_value_of_a_texture(self):
        self.refuses_other_values("texture")

    def test_another_value_of_a_module_in_a_further_context(self):
        self.refuses_other_values("context")

    def test_another_value_of_linked_code(self):
        self.refuses_other_values("link")


if __name__ == "__main__":
    unittest.main()
