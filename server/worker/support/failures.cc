#include "server/worker/support/failures.h"

#include <algorithm>
#include <chrono>

#include "server/worker/support/down_writer.h"
#include "server/worker/support/log_line.h"
#include "server/worker/support/objects.h"
#include "server/worker/support/text_pipes.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

constexpr std::chrono::milliseconds kLastWords{200};  // for the down log to empty

}  // namespace

void Failures::Fatal(const std::string& sentence) {
  if (over_.exchange(true)) return;
  LogLine("session over: %s", sentence.c_str());
  uses_.down.Error(0, CUDA_ERROR_UNKNOWN, wire::kSticky | wire::kSessionOver, 0, sentence);
  uses_.down.CloseAfterFlush(CUDA_ERROR_UNKNOWN, kLastWords);
  uses_.up.Close(CUDA_ERROR_UNKNOWN);
  uses_.over();
}

void Failures::Leave() {
  if (over_.exchange(true)) return;
  uses_.over();
}

void Failures::CallFailed(uint32_t context, uint64_t position, CUresult code,
                          const std::string& what) {
  std::string text = what + " failed with error " + std::to_string(code);
  LogLine("%s (position %llu)", text.c_str(), static_cast<unsigned long long>(position));
  uses_.down.Error(position, code, 0, context, text);
}

void Failures::Refused(uint32_t context, uint64_t position, CUresult code,
                       const std::string& sentence) {
  LogLine("%s (position %llu)", sentence.c_str(), static_cast<unsigned long long>(position));
  uses_.down.Error(position, code, 0, context, sentence);
}

void Failures::Explain(const std::string& sentence) {
  uses_.down.Error(0, CUDA_SUCCESS, 0, 0, sentence);
}

void Failures::DriverFailed(Context& context, uint64_t position, CUresult code,
                            const std::string& what) {
  if (!IsSticky(code)) {
    if (context.failed == 0) CallFailed(context.id, position, code, what);
    return;
  }
  // A second thread waits until the client has the report, which its reply must not overtake.
  base::MutexLock lock(report_mutex_);
  if (context.failed != 0) return;
  std::string text =
      what + " failed with error " + std::to_string(code) + ", which stays with its context";
  LogLine("%s (context %u, position %llu)", text.c_str(), context.id,
          static_cast<unsigned long long>(position));
  if (uses_.text != nullptr) uses_.text->Drain();
  // A fault in one context makes every context of the process fail (measured on an H200). The other
  // contexts are reported first: a program that knows of this one's error must not get "success"
  // from another.
  std::vector<std::shared_ptr<Context>> all = uses_.contexts.All();
  std::ranges::stable_partition(all, [&](const auto& one) { return one.get() != &context; });
  std::erase_if(all, [](const auto& one) { return one->failed != 0; });
  for (const auto& one : all) uses_.down.Error(position, code, wire::kSticky, one->id, text);
  // From here on the log thread drops what waits and the completion thread ends what was issued.
  // Not before the client knows why: it would take the end for success.
  for (const auto& one : all) one->failed = code;
  uses_.up.PokeConsumer();  // wakes the log thread
}

}  // namespace longwire::worker
