#include "server/daemon/policies/takers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShort{50};

class TakersTest : public ::testing::Test {
 protected:
  std::shared_ptr<policy::Program> Load(const std::string& name) {
    policy::Engine* engine = policy::LoadEngine(&sentence_, POLICY_ENGINE);
    std::ifstream file(std::filesystem::path(POLICY_OBJECTS) / (name + ".o"), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto program = policy::Program::Load(name, std::as_bytes(std::span(text)), *engine, &sentence_);
    EXPECT_NE(nullptr, program) << sentence_;
    return program;
  }
  // Keepers of two devices; a session whose worker has heard when it is asked about `hears` times.
  Takers Others(int hears) {
    Takers takers;
    takers.keepers = [this](std::string*) { return std::optional(keepers_); };
    takers.late_sessions = [this, hears] {
      return ++asked_ > hears ? std::vector<uint64_t>{} : std::vector<uint64_t>{4, 7};
    };
    return takers;
  }
  bool Says(const std::string& words) const { return sentence_.find(words) != std::string::npos; }

  std::string sentence_;
  std::vector<KeeperOfDevice> keepers_{{0, 71}, {1, 72}};
  int asked_ = 0;
};

TEST_F(TakersTest, ItDecidesWhenAllKeepersHaveIt) {
  auto program = Load("priority_swap");
  program->Take(0, 71);
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(20));
    program->Take(1, 72);
  });
  EXPECT_TRUE(AwaitTakers(*program, Others(0), milliseconds(60'000), &sentence_));
  EXPECT_EQ("", sentence_);
  late.join();
}

TEST_F(TakersTest, AKeeperThatDoesNotTakeItInTimeEndsItAndIsNamed) {
  auto program = Load("priority_swap");
  program->Take(0, 71);
  program->Take(1, 70);  // its predecessor
  EXPECT_FALSE(AwaitTakers(*program, Others(0), kShort, &sentence_));
  EXPECT_TRUE(Says("the keeper of device 1 has not taken it")) << sentence_;
  EXPECT_TRUE(program->ended());
}

TEST_F(TakersTest, AKeeperThatCannotRunItSaysWhy) {
  auto program = Load("priority_swap");
  program->End("the keeper of device 0 cannot run it: no engine");
  EXPECT_FALSE(AwaitTakers(*program, Others(0), milliseconds(60'000), &sentence_));
  EXPECT_EQ("the keeper of device 0 cannot run it: no engine", sentence_);
}

TEST_F(TakersTest, ADeviceWithoutAKeeperIsSaid) {
  keepers_ = {{0, 71}, {1, 0}};
  auto program = Load("priority_swap");
  program->Take(0, 71);
  EXPECT_TRUE(AwaitTakers(*program, Others(0), kShort, &sentence_));
  EXPECT_EQ("there is no keeper now of device 1; the next one gets it", sentence_);
}

TEST_F(TakersTest, WithoutAWardenNobodyRunsIt) {
  auto program = Load("priority_swap");
  Takers takers = Others(0);
  takers.keepers = [](std::string* sentence) -> std::optional<std::vector<KeeperOfDevice>> {
    *sentence = "longwire-warden went away";
    return std::nullopt;
  };
  EXPECT_FALSE(AwaitTakers(*program, takers, kShort, &sentence_));
  EXPECT_TRUE(Says("longwire-warden went away")) << sentence_;
}

TEST_F(TakersTest, WorkersAreAwaitedAndLateOnesNamed) {
  auto program = Load("urgent_kernels");
  EXPECT_TRUE(AwaitTakers(*program, Others(2), milliseconds(60'000), &sentence_));
  EXPECT_EQ("", sentence_);
  EXPECT_TRUE(AwaitTakers(*program, Others(1'000'000), kShort, &sentence_));
  EXPECT_TRUE(Says("not yet about launches of the sessions 4, 7:")) << sentence_;
  program->Retire();
  AwaitLeavers(*program, Others(1'000'000), kShort, &sentence_);
  EXPECT_TRUE(Says("still holds in the sessions 4, 7")) << sentence_;
}

TEST_F(TakersTest, NobodyElseHasToTakeWhatOnlyLongwiredAsks) {
  auto program = Load("roomiest");
  EXPECT_TRUE(AwaitTakers(*program, Others(1'000'000), kShort, &sentence_));
  EXPECT_EQ("", sentence_);
  program->Retire();
  EXPECT_FALSE(AwaitTakers(*program, Others(0), kShort, &sentence_));
  EXPECT_EQ("it was unloaded, or replaced", sentence_);
}

}  // namespace
}  // namespace longwire::daemon
