// A session that ends: before, during and after it, over every call of the description. A call of
// which success could be false returns the code with which the session ended.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "tests/wire_inprocess/every_call.h"
#include "tests/wire_inprocess/joined.h"
#include "tests/wire_inprocess/neutral.h"

namespace longwire::joined {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr CUresult kEnded = CUDA_ERROR_LAUNCH_FAILED;
// By then every call that waited has returned.
constexpr auto kSoon = 5s;

// These wait for the server whatever the arguments, or with the neutral ones: the test would be
// empty if they did not.
constexpr std::string_view kWaits[] = {
    "cuCtxSynchronize",    "cuEventSynchronize",       "cuMemFreeHost",        "cuMemGetInfo_v2",
    "cuMemHostUnregister", "cuMemcpyDtoH_v2",          "cuMemcpyDtoH_v2_ptds", "cuModuleLoadData",
    "cuStreamSynchronize", "cuStreamSynchronize_ptsz",
};

// What ends objects that other calls are made with comes behind those; contexts and captures last.
int Turn(std::string_view name) {
  auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("Capture")) return 2;
  if (has("Ctx") && (has("Destroy") || has("Reset") || has("Release") || has("Detach"))) return 2;
  for (std::string_view ends : {"Destroy", "Free", "Release", "Unload", "Unregister", "Close"}) {
    if (has(ends)) return 1;
  }
  return 0;
}

struct Made {
  const EveryCall* call = nullptr;
  std::atomic<pid_t> thread{0};  // that makes it
  std::atomic<bool> returned{false};
  CUresult result = CUDA_SUCCESS;
  bool waited = false;  // had not returned when the session ended
};

void Make(Made* made) {
  EXPECT_OK(cuCtxSetCurrent(TheObjects().context));
  made->thread.store(gettid());
  made->result = made->call->make();
  made->returned.store(true);
}

void MakeObjects() {
  Bench bench;
  Objects& objects = TheObjects();
  objects.context = bench.context;
  objects.function = bench.kernel;
  ASSERT_OK(cuModuleLoadData(&objects.module, "the fake driver reads no code"));
  ASSERT_OK(cuStreamCreate(&objects.stream, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuEventCreate(&objects.event, 0));
  ASSERT_OK(cuMemAlloc_v2(&objects.memory, 1 << 20));
  ASSERT_OK(cuGraphCreate(&objects.graph, 0));
  ASSERT_OK(cuMemHostAlloc(&objects.pinned, 4096, 0));
  static std::byte registered[4096];
  objects.registered = registered;
  ASSERT_OK(cuMemHostRegister_v2(registered, sizeof(registered), 0));
  static AddParameters values{objects.memory, 1, 1};
  static void* parameters[] = {&values.data, &values.count, &values.add};
  objects.kernel_parameters = parameters;
  ASSERT_OK(cuCtxSynchronize());
}

// Work that is never done, before whatever waits.
void QueueWork() {
  const Objects& objects = TheObjects();
  EXPECT_OK(cuMemsetD8Async(objects.memory, 1, 64, objects.stream));
  EXPECT_OK(cuEventRecord(objects.event, objects.stream));
  EXPECT_OK(cuMemsetD8Async(objects.memory, 1, 64, CU_STREAM_LEGACY));
}

// Whether the thread has begun and is asleep: not one that only waits for a processor.
bool Sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text(std::istreambuf_iterator<char>(file), {});
  size_t behind_name = text.rfind(") ");
  return thread != 0 && behind_name != std::string::npos && text[behind_name + 2] == 'S';
}

// Until as many have returned as will while nothing comes from the server: each of the others has
// been seen asleep, and for a while none has returned.
void LetThemWait(const std::vector<std::unique_ptr<Made>>& all) {
  auto count = [&] {
    return std::ranges::count_if(all, [](auto& m) { return m->returned.load(); });
  };
  auto begun = Clock::now(), last = begun;
  auto returned = count();
  std::set<const Made*> asleep;
  while (Clock::now() - begun < 30s) {
    std::this_thread::sleep_for(10ms);
    for (auto& made : all) {
      if (!made->returned.load() && Sleeps(made->thread.load())) asleep.insert(made.get());
    }
    auto now = count();
    if (now != returned) {
      returned = now;
      last = Clock::now();
      asleep.clear();
    }
    bool all_sleep =
        returned + static_cast<ptrdiff_t>(asleep.size()) == static_cast<ptrdiff_t>(all.size());
    if (all_sleep && Clock::now() - last > 300ms) return;
  }
}

std::string NamesOf(const std::vector<std::unique_ptr<Made>>& all, auto which) {
  std::string names;
  for (auto& made : all) {
    if (which(*made)) names += std::string(" ") + made->call->name;
  }
  return names;
}

std::string CodesOf(const std::vector<std::unique_ptr<Made>>& all, std::string_view name) {
  std::string codes;
  for (auto& made : all) {
    if (made->call->name == name) codes += " " + std::to_string(made->result);
  }
  return codes;
}

void ExpectAllReturn(const std::vector<std::unique_ptr<Made>>& all) {
  auto hangs = [](const Made& made) { return !made.returned.load(); };
  auto until = Clock::now() + kSoon;
  while (Clock::now() < until && std::ranges::any_of(all, [&](auto& m) { return hangs(*m); })) {
    std::this_thread::sleep_for(5ms);
  }
  std::string hanging = NamesOf(all, hangs);
  if (hanging.empty()) return;
  ADD_FAILURE() << "these hang after the session's end:" << hanging;
  std::_Exit(1);  // their threads cannot be joined
}

class DeadSession : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    MayStandStill() = true;
    MakeObjects();
    for (const EveryCall& call : EveryCallThereIs()) {
      if (*call.without_session != '\0') before[call.name] = call.make();
    }
    EXPECT_OK(cuCtxSetCurrent(TheObjects().context));
  }
  static inline std::map<std::string_view, CUresult> before;  // of those that need no session
};

TEST_F(DeadSession, ACallThatWaitsWhenItEndsSaysSo) {
  StandStill();
  QueueWork();
  std::vector<std::unique_ptr<Made>> all;
  std::vector<std::thread> threads;
  for (int turn = 0; turn < 3; ++turn) {
    for (const EveryCall& call : EveryCallThereIs()) {
      if (Turn(call.name) != turn || *call.without_session != '\0') continue;
      all.push_back(std::make_unique<Made>());
      all.back()->call = &call;
      threads.emplace_back(Make, all.back().get());
    }
    LetThemWait(all);
  }
  for (auto& made : all) made->waited = !made->returned.load();
  RecordProperty("waited", NamesOf(all, [](const Made& made) { return made.waited; }));
  EndTheSession();
  ExpectAllReturn(all);
  for (std::thread& thread : threads) thread.join();
  for (auto& made : all) {
    if (!made->waited) continue;
    EXPECT_EQ(kEnded, made->result) << made->call->name;
  }
  for (std::string_view name : kWaits) {
    EXPECT_TRUE(
        std::ranges::any_of(all, [&](auto& m) { return m->waited && m->call->name == name; }))
        << name << " did not wait, but returned" << CodesOf(all, name);
  }
}

TEST_F(DeadSession, EveryCallSaysSoAfterwards) {
  while (cuCtxSynchronize() == CUDA_SUCCESS) std::this_thread::sleep_for(1ms);
  for (const EveryCall& call : EveryCallThereIs()) {
    if (*call.without_session == '\0') {
      EXPECT_EQ(kEnded, call.make()) << call.name;
    } else {
      EXPECT_EQ(before[call.name], call.make()) << call.name << ": " << call.without_session;
    }
  }
}

}  // namespace
}  // namespace longwire::joined
