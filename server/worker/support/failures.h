// Reports errors to the client, and ends the session.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "server/worker/support/driver.h"
#include "server/worker/support/handle_table.h"
#include "wire/rings/ring.h"

namespace longwire::worker {

class DownWriter;
class TextPipes;
struct Context;

class Failures {
 public:
  struct Uses {
    DownWriter& down;
    wire::RingMemory& up;
    const HandleTable<Context>& contexts;
    TextPipes* text;             // null: device printf is not forwarded
    std::function<void()> over;  // called once, on any thread, when the session is over
  };
  explicit Failures(Uses uses) : uses_(std::move(uses)) {}
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  // The session cannot go on: reports why to the client and closes the rings.
  void Fatal(const std::string& sentence);
  // The client has disconnected.
  void Leave();
  // The session is being destroyed: nothing is reported.
  void Stop() { over_ = true; }
  bool over() const { return over_; }

  // Reports that a driver call failed. Sticky codes stay with the context, others are reported
  // once.
  void DriverFailed(Context& context, uint64_t position, CUresult code, const std::string& what);
  // Reports a call that the worker itself refuses, with a sentence for the program's log of errors.
  void Refused(uint32_t context, uint64_t position, CUresult code, const std::string& sentence);
  // A reason that the program's log of errors has if its call fails: it may try something smaller.
  void Explain(const std::string& sentence);
  // Reports an error of a call whose context does not exist (any more).
  void CallFailed(uint32_t context, uint64_t position, CUresult code, const std::string& what);

 private:
  Uses uses_;
  std::atomic<bool> over_{false};
  base::Mutex report_mutex_;  // held while a sticky error is reported to the client
};

}  // namespace longwire::worker
