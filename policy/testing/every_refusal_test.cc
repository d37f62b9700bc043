// Every refusal of policies' verifier, each provoked by an input.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <functional>

#include "policy/access.h"
#include "policy/flow.h"
#include "policy/store.h"
#include "policy/testing/load.h"
#include "policy/testing/refusal_table.h"

namespace longwire::policy::testing {
namespace {

using Code = std::vector<Instruction>;

constexpr uint8_t kSet = 0xb7, kCopy = 0xbf, kLeave = 0x95, kLoad = 0x79, kKeep = 0x7b;

Instruction I(uint8_t code, uint8_t target = 0, uint8_t source = 0, int16_t offset = 0,
              int32_t immediate = 0) {
  return {code, static_cast<uint8_t>(target | source << 4), offset, immediate};
}

// What flow or access says of a function of its own; it names the instruction.
std::string OfCode(const Code& instructions) {
  HookCode code;
  code.hook = "turn_next";
  code.function = "made";
  code.instructions = instructions;
  std::string sentence;
  EXPECT_FALSE(CheckFlow(code, &sentence) && CheckAccess(code, 64, &sentence));
  EXPECT_TRUE(sentence.starts_with("made (instruction ")) << sentence;
  return sentence;
}

const Code kCodes[] = {
    {I(kLoadWide)},
    {I(kSet), I(kLeave), I(kSet), I(kLeave)},    // behind the end
    {I(kCall), I(kLeave)},                       // by number
    {I(kSet), I(0x16, 0, 0, 0), I(kLeave)},      // a jump of 32 bits
    {I(kSet), I(0x05, 0, 0, -2), I(kLeave)},     // a loop
    {I(kSet)},                                   // it goes on behind the end
    {I(kSet, 11), I(kLeave)},                    // a register
    {I(kSet, 10), I(kLeave)},                    // the frame's
    {I(0x20), I(kLeave)},                        // a packet
    {I(0xb4), I(kLeave)},                        // 32 bits
    {I(kCopy, 0, 3), I(kLeave)},                 // never set
    {I(kCopy, 0, 1), I(kLeave)},                 // returns a pointer
    {I(kSet), I(0x45, 0, 0, 0, 1), I(kLeave)},   // jumps by bits
    {I(kSet, 2), I(kLoad, 0, 2), I(kLeave)},     // a number as a pointer
    {I(kLoad, 0, 1, 64), I(kLeave)},             // outside of the structure
    {I(kLoad, 0, 10, -520), I(kLeave)},          // of the stack
    {I(0x21, 0, 1), I(kLeave)},                  // another way of reading
    {I(0x22, 1), I(kSet), I(kLeave)},            // and of writing
    {I(kKeep, 1, 1), I(kSet), I(kLeave)},        // writes a pointer
    {I(kSet), I(0xd7), I(kLeave)},               // swaps bytes
    {I(kSet), I(0x67, 0, 0, 0, 64), I(kLeave)},  // shifts all out
    {I(0x2f, 1, 1), I(kSet), I(kLeave)},         // multiplies a pointer
};

// As many paths as no verifier follows: each pair of instructions doubles them.
Code ManyPaths() {
  Code code{I(kSet)};
  for (int i = 0; i < 20; ++i) code.insert(code.end(), {I(0x15, 0, 0, 1), I(kSet)});
  code.push_back(I(kLeave));
  return code;
}

// An object, changed.
class Changed {
 public:
  explicit Changed(const std::string& name) : bytes_(ObjectNamed(name)) {}
  Elf64_Ehdr& head() { return *reinterpret_cast<Elf64_Ehdr*>(bytes_.data()); }
  Elf64_Shdr& section(size_t number) {
    return *reinterpret_cast<Elf64_Shdr*>(bytes_.data() + head().e_shoff +
                                          number * sizeof(Elf64_Shdr));
  }
  std::string NameOf(size_t number) {
    const Elf64_Shdr& names = section(head().e_shstrndx);
    return reinterpret_cast<const char*>(bytes_.data() + names.sh_offset + section(number).sh_name);
  }
  // Those of a kind whose names begin so.
  std::vector<Elf64_Shdr*> Sections(uint32_t type, const std::string& prefix) {
    std::vector<Elf64_Shdr*> found;
    for (size_t i = 0; i < head().e_shnum; ++i) {
      if (section(i).sh_type == type && NameOf(i).starts_with(prefix)) found.push_back(&section(i));
    }
    return found;
  }
  template <class Entry>
  Entry* EntriesOf(const Elf64_Shdr& table) {
    return reinterpret_cast<Entry*>(bytes_.data() + table.sh_offset);
  }
  std::string Refusal() const {
    std::string sentence;
    EXPECT_EQ(nullptr, Program::Load("changed", bytes_, *TheEngine(), &sentence));
    return sentence;
  }

 private:
  std::vector<std::byte> bytes_;
};

using Change = std::function<void(Changed&)>;
const Change kChanges[] = {
    [](Changed& object) { object.head().e_machine = EM_X86_64; },
    [](Changed& object) { object.head().e_shoff = 1 << 30; },
    [](Changed& object) { object.Sections(SHT_SYMTAB, "")[0]->sh_size = 1 << 30; },
    [](Changed& object) { object.head().e_shstrndx = 255; },
    [](Changed& object) { object.Sections(SHT_SYMTAB, "")[0]->sh_link = 9999; },
    [](Changed& object) { object.Sections(SHT_SYMTAB, "")[0]->sh_type = SHT_NULL; },
    [](Changed& object) { object.Sections(SHT_PROGBITS, "hook/")[0]->sh_size = 0; },
    // A section whose function is none any more.
    [](Changed& object) {
      Elf64_Shdr& table = *object.Sections(SHT_SYMTAB, "")[0];
      auto* symbols = object.EntriesOf<Elf64_Sym>(table);
      for (size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) symbols[i].st_info &= 0xf0;
    },
    [](Changed& object) {
      object.EntriesOf<Elf64_Rel>(*object.Sections(SHT_REL, ".relhook/")[0])->r_offset = 1 << 20;
    },
    // Two hooks of one name.
    [](Changed& object) {
      const auto hooks = object.Sections(SHT_PROGBITS, "hook/");
      ASSERT_GT(hooks.size(), 1u);
      hooks[1]->sh_name = hooks[0]->sh_name;
    },
};

std::string OfObject(const std::string& name) {
  std::string sentence;
  EXPECT_EQ(nullptr, TryLoad(name, &sentence)) << name;
  return sentence;
}

// What concerns the process, not the object.
std::vector<std::string> OfSurroundings() {
  std::vector<std::string> said(4);
  OpenEngine("/nowhere/liblongwire-policy.so", &said[0]);
  OpenEngine("libm.so.6", &said[1]);
  Store::Map(wire::Descriptor(open("/dev/null", O_RDWR | O_CLOEXEC)), 8, &said[2]);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  Store::Create(8, &said[3]);
  setrlimit(RLIMIT_NOFILE, &before);
  return said;
}

TEST(EveryRefusalTest, IsProvokedByAnInput) {
  std::vector<std::string> sentences = OfSurroundings();
  for (const Code& code : kCodes) sentences.push_back(OfCode(code));
  sentences.push_back(OfCode(ManyPaths()));
  for (const Change& change : kChanges) {
    Changed object("favourite");
    change(object);
    sentences.push_back(object.Refusal());
  }
  for (const char* name : {"refused_call", "refused_global", "refused_helper", "refused_hook",
                           "refused_map", "refused_maps", "refused_several"}) {
    sentences.push_back(OfObject(name));
  }
  std::string sentence;
  EXPECT_FALSE(ReadObject(std::vector<std::byte>(kMaxObjectBytes + 1), &sentence));
  sentences.push_back(sentence);
  // What policies answer is refused when they run (launching_test, program_test, policies_test).
  const auto refusals = RefusalsIn(POLICY_SOURCES, {"advised.cc", "launching.cc"});
  EXPECT_GT(refusals.size(), 35u);
  const std::vector<std::string> missing = WithoutInput(
      refusals, sentences,
      {// Without /proc: nothing of the object leads there.
       "the engine of policies is looked for beside the running program, but /proc/self/exe "
       "cannot be read ("});
  EXPECT_EQ(std::vector<std::string>{}, missing);
}

}  // namespace
}  // namespace longwire::policy::testing
