// Each testing/objects/refused_*.c begins with what its refusal has to say: the place, then what
// is wrong.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

#include "policy/access.h"
#include "policy/flow.h"
#include "policy/testing/load.h"

namespace longwire::policy::testing {
namespace {

std::vector<std::string> RefusedObjects() {
  std::vector<std::string> names;
  const auto folder = std::filesystem::path(POLICY_SOURCES) / "testing" / "objects";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem();
    if (name.starts_with("refused_")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t AnyHelper(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) { return 0; }

// A context of which what lies behind cannot be accessed, and what lies before is watched.
class WatchedContext {
 public:
  explicit WatchedContext(size_t bytes)
      : bytes_(bytes),
        pages_(static_cast<std::byte*>(
            mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_EQ(0, mprotect(pages_ + kPage, kPage, PROT_NONE));
    std::fill(pages_, context(), kUntouched);
  }
  ~WatchedContext() { munmap(pages_, 2 * kPage); }
  void Run(const CompiledHook& hook) {
    std::fill(context(), pages_ + kPage, std::byte{0x11});
    hook.Run(context());
    if (hook.function() != nullptr) hook.function()(context());
  }
  bool IsUntouched() const {
    return std::all_of(pages_, context(), [](std::byte byte) { return byte == kUntouched; });
  }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr std::byte kUntouched{0xa5};
  std::byte* context() const { return pages_ + kPage - bytes_; }
  const size_t bytes_;
  std::byte* const pages_;
};

size_t ContextOf(const std::string& hook) {
  const auto* found = std::ranges::find(kHooks, hook, &HookShape::name);
  return found == std::end(kHooks) ? 0 : found->context_bytes;
}

class RefusalTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RefusalTest, SaysWhereAndWhat) {
  std::ifstream source(std::filesystem::path(POLICY_SOURCES) / "testing" / "objects" /
                       (GetParam() + ".c"));
  std::string first;
  std::getline(source, first);
  const std::string begin = "/* refused: ";
  ASSERT_TRUE(first.starts_with(begin)) << first;
  const size_t bar = first.find(" |");
  ASSERT_NE(std::string::npos, bar);
  const std::string place = first.substr(begin.size(), bar - begin.size());
  std::string what = first.substr(bar + 2, first.rfind(" */") - bar - 2);
  if (!what.empty()) what.erase(0, 1);

  std::string sentence;
  EXPECT_EQ(nullptr, TryLoad(GetParam(), &sentence));
  EXPECT_NE(std::string::npos, sentence.find(place)) << sentence;
  EXPECT_NE(std::string::npos, sentence.find(what)) << sentence;
}

INSTANTIATE_TEST_SUITE_P(Objects, RefusalTest, ::testing::ValuesIn(RefusedObjects()),
                         [](const auto& info) { return info.param; });

// Each byte of each instruction of an example, changed: what is then refused, is refused with a
// place; what is not, keeps within its context.
class ChangedTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ChangedTest, IsRefusedWithItsPlaceOrKeepsWithinItsContext) {
  std::string sentence;
  const auto object = ReadObject(ObjectNamed(GetParam()), &sentence);
  ASSERT_TRUE(object) << sentence;
  const HelperShape helpers[] = {
      {"lw_map_get", AnyHelper, 2}, {"lw_map_set", AnyHelper, 3}, {"lw_map_add", AnyHelper, 3}};
  int refused = 0, accepted = 0;
  for (const HookCode& code : object->hooks) {
    const size_t bytes = ContextOf(code.hook);
    WatchedContext place(bytes);
    for (size_t byte = 0; byte < code.instructions.size() * sizeof(Instruction); ++byte) {
      for (const uint8_t change : {0x01, 0x04, 0x08, 0x10, 0x40, 0x80, 0xff}) {
        HookCode changed = code;
        reinterpret_cast<uint8_t*>(changed.instructions.data())[byte] ^= change;
        sentence.clear();
        std::unique_ptr<CompiledHook> compiled;
        if (CheckFlow(changed, &sentence) && CheckAccess(changed, bytes, &sentence)) {
          compiled = TheEngine()->Compile(changed, bytes, helpers, &sentence);
        }
        if (compiled != nullptr) {
          ++accepted;
          place.Run(*compiled);
          EXPECT_TRUE(place.IsUntouched()) << "byte " << byte << " ^ " << int{change};
          continue;
        }
        ++refused;
        EXPECT_NE(std::string::npos, sentence.find("(instruction "))
            << "byte " << byte << " ^ " << int{change} << ": " << sentence;
        EXPECT_NE(std::string::npos, sentence.find(" of " + GetParam() + ".c")) << sentence;
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 100);
}

INSTANTIATE_TEST_SUITE_P(Examples, ChangedTest,
                         ::testing::Values("favourite", "priority_swap", "urgent_kernels"),
                         [](const auto& info) { return info.param; });

TEST(EngineTest, WithoutItThePackageIsNamed) {
  std::string sentence;
  EXPECT_EQ(nullptr, OpenEngine("/nowhere/liblongwire-policy.so", &sentence));
  EXPECT_NE(std::string::npos, sentence.find("install the package longwire-policy")) << sentence;
  EXPECT_EQ(nullptr, OpenEngine("libm.so.6", &sentence)) << "a library, but no engine";
  EXPECT_NE(std::string::npos, sentence.find("is not of version")) << sentence;
}

TEST(ObjectTest, AnyPrefixOfAnObjectIsRefusedWithASentence) {
  const auto object = ObjectNamed("favourite");
  ASSERT_FALSE(object.empty());
  for (size_t size = 0; size < object.size(); size += 7) {
    std::string sentence;
    EXPECT_FALSE(ReadObject(std::span(object).first(size), &sentence)) << size;
    EXPECT_FALSE(sentence.empty()) << size;
  }
}

TEST(ObjectTest, AnotherFileIsNoObject) {
  std::string sentence;
  const auto text = ReadFile(std::filesystem::path(POLICY_SOURCES) / "examples" / "favourite.c");
  EXPECT_FALSE(ReadObject(text, &sentence));
  EXPECT_NE(std::string::npos, sentence.find("clang -target bpf")) << sentence;
}

}  // namespace
}  // namespace longwire::policy::testing
