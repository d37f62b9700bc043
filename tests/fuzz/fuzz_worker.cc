// A worker's session, from the log to the driver: well-formed calls with wrong arguments, in any
// order, on any thread, context and stream; some with a wrong header, or cut. The driver notes
// which handles it has given out, and ends the process for any other; some of its calls fail.
#include <chrono>
#include <memory>
#include <span>
#include <thread>

#include "server/worker/testing/test_session.h"
#include "tests/fuzz/chosen_values.h"
#include "tests/fuzz/strict_driver.h"

namespace longwire::worker::testing {
namespace {

constexpr size_t kMaxCalls = 64;
constexpr std::chrono::milliseconds kPatience{20};

const std::vector<CallId>& AllCalls() {
  static const auto* ids = [] {
    auto* all = new std::vector<CallId>;
    calls::ForEachCall([&]<class Call>(const char*) { all->push_back(Call::kId); });
    return all;
  }();
  return *ids;
}

// Sends one call whose number, header and arguments the input chooses.
void SendOne(TestSession& session, fuzz::ChosenValues& values) {
  CallId id = AllCalls()[values.Below(AllCalls().size())];
  bool odd = values.Below(16) == 0;  // its header
  uint64_t stream = CallStreamOrdered(id) != odd ? values.Small() : 0;
  auto flags = static_cast<uint16_t>(values.Below(8) == 0 ? values.Below(4) : 0);
  uint32_t thread = values.Below(8) == 0 ? static_cast<uint32_t>(values.Number()) : 1;
  calls::ForEachCall([&]<class Call>(const char*) {
    if (Call::kId != id) return;
    Call call;
    VisitFields(call, values);
    wire::Writer writer;
    call.Encode(writer);
    auto arguments = writer.span();
    if (values.Below(64) == 0) arguments = arguments.first(values.Below(arguments.size() + 1));
    session.SendRaw(static_cast<uint16_t>(id), arguments, stream, flags, thread);
  });
}

// What every input finds: streams, an event, a module with a function.
void Furnish(TestSession& session) {
  session.CreateStream(1);
  session.CreateStream(2, StreamKind::kBlocking);
  session.CreateStream(3, StreamKind::kLegacy);
  calls::lwEventCreate event;
  event.event = 3;
  session.Send(event);
  session.LoadFunction();
}

void Run(std::span<const uint8_t> input) {
  constexpr std::array kCodes = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,
                                 CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_NOT_SUPPORTED};
  fuzz::ChosenValues values(input);
  FakeDriver streams;  // of the strict driver
  auto session = std::make_unique<TestSession>(fuzz::StrictDriver(), OneDevice());
  Furnish(*session);
  unsigned interval = values.Byte();
  fuzz::FailCalls(interval < 128 ? 0 : interval % 16, kCodes[interval % kCodes.size()]);
  for (size_t i = 0; i < kMaxCalls && !values.empty() && !session->up->closed(); ++i) {
    SendOne(*session, values);
  }
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (session->taken() < session->sent() && !session->over &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // for the helpers
  session.reset();
  fuzz::ForgetHandles();
}

}  // namespace
}  // namespace longwire::worker::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  longwire::worker::testing::Run({data, size});
  return 0;
}
