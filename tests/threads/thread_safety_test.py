"""Plants faults in the use of a lock and expects clang's analysis to find each."""
import json
import pathlib
import tempfile
import unittest

import thread_safety

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = """#include "base/mutex.h"
using longwire::base::Mutex, longwire::base::MutexLock, longwire::base::CondVar;
class Counter {
 public:
  void Add() { MutexLock lock(mutex_); Increase(); changed_.NotifyAll(); }
  int Wait() { MutexLock lock(mutex_); while (value_ == 0) changed_.Wait(lock); return value_; }
  void Planted() { PLANTED }
 private:
  void Increase() LONGWIRE_REQUIRES(mutex_) { ++value_; }
  Mutex mutex_;
  CondVar changed_;
  int value_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};
"""


class ThreadSafetyTest(unittest.TestCase):
    def check(self, planted):
        with tempfile.TemporaryDirectory() as folder:
            generated = pathlib.Path(folder) / "longwire"
            generated.mkdir()
            (generated / "lock_checks.h").write_text("#define LONGWIRE_LOCK_CHECKS 1\n")
            source = pathlib.Path(folder) / "planted.cc"
            source.write_text(SOURCE.replace("PLANTED", planted))
            command = (f"/usr/bin/ccache /usr/bin/c++ -I{ROOT} -I{folder} -std=gnu++20 -O1 "
                       f"-fpch-preprocess -o planted.o -c {source}")
            analysis = thread_safety.Analysis("clang++-19", folder)
            return analysis.check(source, {"command": command})

    def test_the_preset_asan_analyses_what_it_compiles(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        [asan] = [preset["cacheVariables"] for preset in presets if preset["name"] == "asan"]
        self.assertIn("clang++", asan["CMAKE_CXX_COMPILER"])
        self.assertIn("-Wthread-safety -Werror=thread-safety",
                      asan["CMAKE_CXX_FLAGS_RELWITHDEBINFO"])

    def test_good_use_has_no_findings(self):
        self.assertEqual("", self.check("MutexLock lock(mutex_); Increase();"))

    def test_a_member_without_its_lock(self):
        self.assertIn("requires holding mutex", self.check("++value_;"))

    def test_a_call_without_the_lock_it_needs(self):
        self.assertIn("requires holding mutex", self.check("Increase();"))

    def test_a_member_after_the_lock_was_released(self):
        self.assertIn("requires holding mutex",
                      self.check("MutexLock lock(mutex_); lock.Unlock(); ++value_;"))

    def test_it_is_found_among_others_too(self):
        with tempfile.TemporaryDirectory() as folder:
            generated = pathlib.Path(folder) / "longwire"
            generated.mkdir()
            (generated / "lock_checks.h").write_text("#define LONGWIRE_LOCK_CHECKS 1\n")
            chosen = {}
            for name, planted in (("a", "Add();"), ("b", "++value_;"), ("c", "Add();")):
                source = pathlib.Path(folder) / f"{name}.cc"
                source.write_text(SOURCE.replace("PLANTED", planted).replace("Counter", name))
                chosen[source] = {"command": f"c++ -I{ROOT} -I{folder} -std=gnu++20 -c {source}"}
            analysis = thread_safety.Analysis("clang++-19", folder)
            found = analysis.check_all(list(chosen), chosen)
            self.assertEqual(["b"], [source.stem for source in found])

    def test_a_lock_twice(self):
        self.assertIn("already held", self.check("MutexLock lock(mutex_); Add(); mutex_.Lock();"))

    def test_a_lock_that_stays(self):
        self.assertIn("still held at the end", self.check("mutex_.Lock();"))


if __name__ == "__main__":
    unittest.main()
