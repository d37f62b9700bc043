// A worker's session, from the log to the driver: well-formed calls with wrong arguments, in any
// order, on any thread, context and stream. The driver notes which handles it has given out, and
// ends the process for any other.
#include <chrono>
#include <memory>
#include <span>
#include <thread>

#include "server/worker/testing/test_session.h"
#include "tests/fuzz/chosen_values.h"
#include "tests/fuzz/strict_driver.h"

namespace longwire::worker::testing {
namespace {

constexpr size_t kMaxCalls = 48;
constexpr std::chrono::milliseconds kPatience{20};

// Sends one call whose number, header and arguments the input chooses.
void SendOne(TestSession& session, fuzz::ChosenValues& values) {
  static const std::vector<CallId> ids = [] {
    std::vector<CallId> all;
    calls::ForEachCall([&]<class Call>(const char*) { all.push_back(Call::kId); });
    return all;
  }();
  CallId id = ids[values.Below(ids.size())];
  uint64_t stream = CallStreamOrdered(id) ? values.Small() : 0;
  auto flags = static_cast<uint16_t>(values.Below(8) == 0 ? values.Below(4) : 0);
  uint32_t thread = values.Below(8) == 0 ? static_cast<uint32_t>(values.Number()) : 1;
  calls::ForEachCall([&]<class Call>(const char*) {
    if (Call::kId != id) return;
    Call call;
    VisitFields(call, values);
    session.Send(call, stream, flags, thread);
  });
}

// What every input finds: streams, an event, a module with a function.
void Furnish(TestSession& session) {
  session.CreateStream(1);
  session.CreateStream(2, StreamKind::kBlocking);
  calls::lwEventCreate event;
  event.event = 3;
  session.Send(event);
  session.LoadFunction();
}

void Run(std::span<const uint8_t> input) {
  fuzz::ChosenValues values(input);
  auto session = std::make_unique<TestSession>(fuzz::StrictDriver(), OneDevice());
  Furnish(*session);
  for (size_t i = 0; i < kMaxCalls && !values.empty() && !session->up->closed(); ++i) {
    SendOne(*session, values);
  }
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (session->taken() < session->sent() && !session->over &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // for the helpers
  session.reset();
  fuzz::ForgetHandles();
}

}  // namespace
}  // namespace longwire::worker::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  longwire::worker::testing::Run({data, size});
  return 0;
}
