// Random programs of device memory and copies, held against a model of every byte: memory of every
// kind, on every device, freed while it is used, mapped elsewhere, grown; copies of every form at
// any offset and size, fills and kernels in streams of every kind, ordered by events alone.
//
//     driver_memory_random [SEED [PROGRAMS [trace]]]
//
// Program N of a run has the seed SEED + N and can be run alone.
#include "driver_memory_copies.h"
#include "driver_memory_fills.h"
#include "driver_memory_mistakes.h"
#include "driver_memory_objects.h"

namespace {

class Program {
 public:
  Program(Contexts& contexts, unsigned seed, bool trace)
      : machine_(contexts, seed), objects_(machine_), seed_(seed), trace_(trace) {}

  void Run() {
    for (step_ = 0; step_ < 80; ++step_) Step();
    for (size_t i = 0; i < objects_.count(); ++i) Compare(objects_.at(i));
  }

 private:
  void Say(const char* what, const Memory* some = nullptr, const Memory* other = nullptr) const {
    if (!trace_) return;
    std::printf("%3d %s", step_, what);
    for (const Memory* memory : {some, other}) {
      if (memory == nullptr) continue;
      std::printf(" %d:%s[%zu]", memory->number, kKindNames[static_cast<int>(memory->kind)],
                  memory->bytes());
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  void Step() {
    const size_t which = random_.Below(32);
    if (which < 4 || objects_.count() < 3) {
      if (objects_.count() < 16) objects_.Make();
      Say("make", objects_.at(objects_.count() - 1));
    } else if (which < 6) {
      const size_t gone = random_.Below(objects_.count());
      Say("free", objects_.at(gone));
      objects_.Free(gone);
    } else if (which < 17) {
      Memory *to = Any(), *from = Any();
      Say("copy", to, from);
      copies_.Make(to, from);
    } else if (which < 24) {
      Memory* memory = AnyLinear();
      if (memory == nullptr) return;
      Say(which < 20 ? "set" : "mix", memory);
      which < 20 ? fills_.Set(memory) : Mix(memory);
    } else if (which == 24) {
      Say("batch");
      copies_.Batch([&] { return objects_.Any([](const Memory& it) { return !it.is_array(); }); });
    } else if (which < 27) {
      Memory* memory = Any();
      Say("compare", memory);
      Compare(memory);
    } else if (which == 27) {
      Memory* memory = objects_.Any([](const Memory& it) { return it.kind == Kind::kMapped; });
      if (memory != nullptr) Say("move", memory);
      memory != nullptr ? objects_.Move(memory) : objects_.ChangePool();
    } else if (which == 28) {
      Say("pool");
      random_.OneOf(4) ? objects_.ReleaseOne() : objects_.ChangePool();
    } else if (which == 29) {
      Grow();
    } else if (which == 30) {
      Say("mistake");
      mistakes_.Make(Any(), objects_);
    } else {
      Say("settle");
      random_.OneOf(2) ? machine_.SettleAll() : machine_.Replace(machine_.AnyLane(0));
    }
  }

  Memory* Any() {
    return objects_.Any([](const Memory&) { return true; });
  }
  Memory* AnyLinear() {
    return objects_.Any([](const Memory& it) { return it.is_linear_device(); });
  }
  void Mix(Memory* to) {
    Memory* from = objects_.Any(
        [&](const Memory& it) { return it.is_linear_device() && it.context == to->context; });
    fills_.Mix(to, from);
  }

  // A larger buffer begins with what the smaller one has, which is gone then.
  void Grow() {
    Memory* old = objects_.Any([](const Memory& it) { return it.kind == Kind::kAllocated; });
    if (old == nullptr) return;
    Say("grow", old);
    Memory* larger = objects_.Allocate(old->bytes() + random_.Size(2 * kMiB), old->context);
    const size_t bytes = old->bytes();
    copies_.Issue({{larger, 0, 0, 0, 0, bytes, 1}, {old, 0, 0, 0, 0, bytes, 1}, {bytes}});
    objects_.Free(old);
  }

  void Compare(Memory* memory) {
    const Extent extent = WholeExtent(*memory);
    const Bytes wanted = Read(Whole(memory), extent);
    Bytes found(wanted.size());
    if (memory->is_host()) {
      machine_.HostUse(*memory, false);
      std::memcpy(found.data(), reinterpret_cast<const void*>(memory->address), found.size());
    } else {
      Fetch(memory, extent, &found);
    }
    size_t first = 0, wrong = 0;
    for (size_t i = found.size(); i-- > 0;) {
      if (found[i] == wanted[i]) continue;
      first = i;
      ++wrong;
    }
    EXPECT(
        wrong == 0,
        "seed %u, step %d: memory %d (%s, %zu bytes, row %zu): %zu bytes are wrong, from %zu on: "
        "%d instead of %d",
        seed_, step_, memory->number, kKindNames[static_cast<int>(memory->kind)], found.size(),
        memory->width, wrong, first, found[first], wanted[first]);
  }
  void Fetch(Memory* memory, const Extent& extent, Bytes* found) {
    machine_.Use(Machine::LegacyLane(memory->context), SpansOf(Whole(memory), extent), false);
    machine_.Enter(memory->context);
    if (!memory->is_array()) {
      CHECK_DRIVER(cuMemcpyDtoH(found->data(), memory->address, found->size()));
      return;
    }
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = memory->array;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = found->data();
    copy.dstPitch = copy.WidthInBytes = extent.width;
    copy.dstHeight = copy.Height = extent.rows;
    copy.Depth = extent.slices;
    CHECK_DRIVER(cuMemcpy3D(&copy));
  }

  Machine machine_;
  Random& random_ = machine_.random;
  Objects objects_;
  Copies copies_{machine_};
  Fills fills_{machine_};
  Mistakes mistakes_{machine_};
  const unsigned seed_;
  const bool trace_;
  int step_ = 0;
};

}  // namespace

int main(int count, char** words) {
  const unsigned seed = count > 1 ? static_cast<unsigned>(std::stoul(words[1])) : 1;
  const unsigned programs = count > 2 ? static_cast<unsigned>(std::stoul(words[2])) : 20;
  Contexts contexts;
  for (unsigned i = 0; i < programs; ++i) Program(contexts, seed + i, count > 3).Run();
  std::printf("PASS driver_memory_random\n");
  return 0;
}
