// A policy beside the swapping that is built in. That it reorders what leaves is in the transcript
// policy/examples/transcripts/priority_swap.txt; here is what the keeper does not leave to it.
#include "server/keeper/swap_advice/advised_swaps.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/name_number.h"
#include "policy/testing/load.h"

namespace longwire::keeper {
namespace {

using std::chrono::milliseconds;

std::shared_ptr<policy::Program> MustLoad(const std::string& name) {
  std::string sentence;
  auto program = policy::testing::TryLoad(name, &sentence);
  EXPECT_NE(nullptr, program) << sentence;
  return program;
}

class AdvisedSwapsTest : public testing::Test {
 protected:
  void Add(uint64_t id, uint64_t owner, uint64_t bytes) {
    regions_.push_back({id, owner, bytes});
    swaps_.Added(regions_.back());
  }
  std::vector<uint64_t> Victims(uint64_t needed, uint64_t room = UINT64_MAX) {
    std::vector<uint64_t> ids;
    for (const Region& region : swaps_.Victims(needed, room, regions_)) ids.push_back(region.id);
    return ids;
  }

  int64_t now_ = 0;
  AdvisedSwaps swaps_{LeastRecentlyUsed(), 2, [this] { return now_; }};
  std::vector<Region> regions_;
};

// By its order region 2 leaves, and then there is no room for region 1, which is needed, too.
TEST_F(AdvisedSwapsTest, WhereItsOrderFindsTooLittleTheBuiltInOneCounts) {
  auto program = MustLoad("priority_swap");
  swaps_.SetOwner(7, 70, base::NumberOfName("high"));
  swaps_.SetOwner(8, 80, base::NumberOfName("low"));
  program->maps().Find("priorities")->Set(base::NumberOfName("high"), 5);
  Add(1, 7, 100);
  Add(2, 8, 60);
  EXPECT_EQ((std::vector<uint64_t>{1}), Victims(50)) << "whose use is longest ago";
  swaps_.Use(program);
  EXPECT_EQ((std::vector<uint64_t>{2}), Victims(50));
  EXPECT_EQ((std::vector<uint64_t>{1}), Victims(90, 100));
  EXPECT_FALSE(program->ended());
}

TEST_F(AdvisedSwapsTest, ItIsToldOfMemoryThatWasThereAndOfWhatHappens) {
  auto program = MustLoad("memory_counts");
  const uint64_t tenant = base::NumberOfName("a");
  swaps_.SetOwner(7, 70, tenant);
  Add(1, 7, 60);
  swaps_.Use(program);
  const policy::Map& bytes = *program->maps().Find("bytes");
  EXPECT_EQ(60u, bytes.Get(tenant));
  Add(2, 7, 100);
  EXPECT_EQ(160u, bytes.Get(tenant));
  swaps_.Accessed(7);
  swaps_.Removed(1);
  EXPECT_EQ(100u, bytes.Get(tenant));
  EXPECT_EQ(1u, program->maps().Find("accessed")->Get(tenant));
  NextLaunches next{3, {42, 0, 0, 0}};
  EXPECT_EQ(milliseconds(0), swaps_.Runs(7, 100, next)) << "it has no opinion";
  const policy::Map& runs = *program->maps().Find("runs");
  EXPECT_EQ(100u, runs.Get(0));
  EXPECT_EQ(3u, runs.Get(1));
  EXPECT_EQ(42u, runs.Get(2));
}

TEST_F(AdvisedSwapsTest, NonsenseEndsItAndWhatIsBuiltInDecides) {
  auto program = MustLoad("memory_nonsense");
  Add(1, 7, 60);
  swaps_.Use(program);
  EXPECT_EQ(milliseconds(0), swaps_.Runs(7, 60, {}));
  EXPECT_NE(std::string::npos, program->why_ended().find("a stay of 2000000000 ns"))
      << program->why_ended();
  EXPECT_EQ((std::vector<uint64_t>{1}), Victims(60));
}

// What another process finds out about it counts here, too: they share its memory.
TEST_F(AdvisedSwapsTest, APolicyThatEndedElsewhereIsNotAsked) {
  auto first = MustLoad("priority_swap");
  std::string sentence;
  const auto object = policy::testing::ObjectNamed("priority_swap");
  auto second =
      policy::Program::Load("priority_swap", object, *policy::testing::TheEngine(), &sentence,
                            wire::Descriptor(dup(first->store().descriptor())));
  ASSERT_NE(nullptr, second) << sentence;
  first->maps().Find("priorities")->Set(base::NumberOfName("high"), 500);
  swaps_.SetOwner(7, 70, base::NumberOfName("high"));
  Add(1, 7, 60);
  swaps_.Use(second);
  EXPECT_EQ(milliseconds(500), swaps_.Runs(7, 60, {})) << "by a value that the other one set";
  first->End("it was slow there");
  EXPECT_EQ(milliseconds(0), swaps_.Runs(7, 60, {}));
  EXPECT_EQ("it was slow there", second->why_ended());
}

}  // namespace
}  // namespace longwire::keeper
