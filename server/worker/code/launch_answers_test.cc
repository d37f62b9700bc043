// A policy's answers about launches, as they reach the driver; and what is asked.
#include "server/worker/code/launch_answers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/name_number.h"
#include "server/worker/testing/test_session.h"
#include "wire/socket.h"

namespace longwire::worker::testing {
namespace {

using launches::AskLaunch;
using launches::LaunchAnswer;
using launches::Shape;
using std::chrono::milliseconds;

constexpr uint64_t kStream = 1;
constexpr Shape kSmall{{1, 1, 1}, {32, 1, 1}, 0}, kLarge{{64, 1, 1}, {32, 1, 1}, 0};

struct Seen {
  std::atomic<int> plain{0}, ex{0};
  std::vector<CUlaunchAttribute> attributes;
};
Seen* seen = nullptr;

DriverTable Table(FakeDriver& driver) {
  DriverTable table = driver.table();
  table.cuCtxGetStreamPriorityRange = [](int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction, void**, void**) {
    seen->attributes.assign(config->attrs, config->attrs + config->numAttrs);
    ++seen->ex;
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, CUstream, void**, void**) {
    ++seen->plain;
    return CUDA_SUCCESS;
  };
  return table;
}

LaunchAnswer With(const AskLaunch& ask, uint32_t priority, bool each = false) {
  LaunchAnswer answer{ask.request, {}, each};
  answer.change.priority = priority;
  return answer;
}

class LaunchAnswersTest : public ::testing::Test {
 protected:
  LaunchAnswersTest() {
    seen = &seen_;
    EXPECT_TRUE(wire::LocalPair(&daemon_, &worker_));
    answers_.emplace(table_, worker_.get());
    answers_->Use(1);
    function_.name = "_Z3AddPii";
    function_.module = "00000000000000ffaa";
  }
  std::optional<AskLaunch> Asked() {
    auto packet = wire::ReceiveMessage(daemon_.get(), milliseconds(50));
    AskLaunch ask;
    if (!packet || message::Unpack(packet->bytes, &ask) != wire::WireResult::kOk) return {};
    return ask;
  }
  bool Decides(const Shape& shape) { return answers_->Decide(function_, 3, shape, &wanted_); }
  // -1: nothing is wanted.
  int Priority() const { return wanted_ == nullptr ? -1 : -wanted_->front().value.priority; }

  Seen seen_;
  FakeDriver driver_;
  DriverTable table_ = Table(driver_);
  wire::Descriptor daemon_, worker_;
  std::optional<LaunchAnswers> answers_;
  Function function_;
  const std::vector<CUlaunchAttribute>* wanted_ = nullptr;
};

TEST_F(LaunchAnswersTest, TheFirstLaunchAsksAndWaits) {
  EXPECT_FALSE(answers_->LeavesAlone(function_));
  EXPECT_FALSE(Decides(kSmall));
  EXPECT_FALSE(Decides(kLarge)) << "another stream's";
  const auto ask = Asked();
  ASSERT_TRUE(ask);
  EXPECT_EQ(base::NumberOfName("_Z3AddPii"), ask->kernel);
  EXPECT_EQ(0xffu, ask->module);
  EXPECT_EQ(3u, ask->device);
  EXPECT_EQ(kSmall, ask->shape);
  EXPECT_FALSE(Asked()) << "once";
  EXPECT_FALSE(answers_->Arrived(With({ask->request + 1, 0, 0, 0, {}}, 2)));
  EXPECT_TRUE(answers_->Arrived(With(*ask, 2)));
  EXPECT_TRUE(Decides(kLarge));
  EXPECT_EQ(2, Priority());
  EXPECT_FALSE(answers_->LeavesAlone(function_));
  EXPECT_FALSE(Asked()) << "the answer is for all shapes";
}

TEST_F(LaunchAnswersTest, AFunctionThatNothingIsWantedOfIsLeftAlone) {
  EXPECT_FALSE(Decides(kSmall));
  answers_->Arrived(With(*Asked(), rules::kUnset));
  EXPECT_TRUE(Decides(kSmall));
  EXPECT_EQ(-1, Priority());
  EXPECT_TRUE(answers_->LeavesAlone(function_));
  answers_->Use(2);
  EXPECT_FALSE(answers_->LeavesAlone(function_)) << "another policy has another answer";
}

TEST_F(LaunchAnswersTest, ShapesCanHaveAnswersOfTheirOwn) {
  EXPECT_FALSE(Decides(kSmall));
  EXPECT_FALSE(Decides(kLarge));
  answers_->Arrived(With(*Asked(), 4, true));
  EXPECT_FALSE(Decides(kLarge)) << "the answer was about the small one";
  answers_->Arrived(With(*Asked(), rules::kUnset, true));
  EXPECT_TRUE(Decides(kLarge));
  EXPECT_EQ(-1, Priority());
  EXPECT_TRUE(Decides(kSmall));
  EXPECT_EQ(4, Priority());
  EXPECT_FALSE(answers_->LeavesAlone(function_));
  EXPECT_FALSE(Asked());
}

// 64 have answers; the others go as the program says, and nobody is asked.
TEST_F(LaunchAnswersTest, ShapesWithoutEndAreNotAskedAbout) {
  int asked = 0;
  for (uint32_t grid = 1; grid <= 80; ++grid) {
    const Shape shape{{grid, 1, 1}, {1, 1, 1}, 0};
    if (Decides(shape)) continue;
    ++asked;
    answers_->Arrived(With(*Asked(), 1, true));
    EXPECT_TRUE(Decides(shape));
  }
  EXPECT_EQ(64, asked);
}

TEST_F(LaunchAnswersTest, WithoutAnAnswerItGoesOnAfterAMoment) {
  const auto begun = std::chrono::steady_clock::now();
  while (!Decides(kSmall)) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kLaunchPatience);
  EXPECT_EQ(-1, Priority());
  answers_->Arrived(With(*Asked(), 3));
  EXPECT_TRUE(Decides(kSmall));
  EXPECT_EQ(3, Priority()) << "the answer came late, and holds from now on";
}

// In a session: launches wait for the answer in their order, and what a rule says goes before it.
class AskingSession : public ::testing::Test {
 protected:
  AskingSession() {
    seen = &seen_;
    EXPECT_TRUE(wire::LocalPair(&daemon_, &worker_));
    test_.emplace(Table(driver_), OneDevice(), worker_.get());
    test_->CreateStream(kStream);
  }
  void Use(uint64_t policy) {
    test_->session->launch_answers().Use(policy);
    test_->session->rules().UsePolicy(policy != 0);
  }
  uint64_t Launch() { return test_->Launch(kStream, 1); }
  void Answer(uint32_t priority) {
    auto packet = wire::ReceiveMessage(daemon_.get(), milliseconds(5000));
    AskLaunch ask;
    ASSERT_TRUE(packet && message::Unpack(packet->bytes, &ask) == wire::WireResult::kOk);
    test_->session->launch_answers().Arrived(With(ask, priority));
    test_->session->WakeLogThread();
  }
  bool IsAsked() { return wire::ReceiveMessage(daemon_.get(), milliseconds(20)).has_value(); }

  Seen seen_;
  FakeDriver driver_;
  wire::Descriptor daemon_, worker_;
  std::optional<TestSession> test_;
};

TEST_F(AskingSession, LaunchesGetWhatIsAnswered) {
  Use(1);
  Launch();
  const uint64_t last = Launch();
  Answer(2);
  test_->ExpectProgress(kStream, last);
  EXPECT_EQ(2, seen_.ex);
  EXPECT_EQ(0, seen_.plain);
  ASSERT_EQ(1u, seen_.attributes.size());
  EXPECT_EQ(-2, seen_.attributes[0].value.priority);
  rules::Rule rule;
  rule.launch.priority = 4;
  test_->session->rules().Replace({{rule}});
  test_->ExpectProgress(kStream, Launch());
  ASSERT_EQ(1u, seen_.attributes.size());
  EXPECT_EQ(-4, seen_.attributes[0].value.priority);
  EXPECT_FALSE(IsAsked()) << "once for each function";
  test_->session->rules().Replace({});
  Use(0);
  test_->ExpectProgress(kStream, Launch());
  EXPECT_EQ(1, seen_.plain);
}

TEST_F(AskingSession, FunctionsThatNothingIsWantedOfAreAskedAboutOnce) {
  test_->ExpectProgress(kStream, Launch());
  Use(1);
  Launch();
  Answer(rules::kUnset);
  for (int i = 0; i < 10; ++i) test_->ExpectProgress(kStream, Launch());
  EXPECT_EQ(0, seen_.ex);
  EXPECT_EQ(12, seen_.plain);
  EXPECT_FALSE(IsAsked());
}

}  // namespace
}  // namespace longwire::worker::testing
