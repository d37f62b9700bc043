// Runs calls. What is above, the calls' implementations, defines it and sees the whole session;
// what issues calls sees this alone.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "server/worker/support/objects.h"

namespace longwire::worker {

class Session;

class Executor {
 public:
  explicit Executor(Session& session) : session_(session) {}

  // Decodes and runs one call on this thread, and answers it. Returns kNotYet if it must be tried
  // again. `stream` is null for calls outside streams.
  CUresult Execute(QueuedCall& call, const std::shared_ptr<Stream>& stream) const;
  // Answers a call that is not run at all.
  void Refuse(const QueuedCall& call, CUresult code) const;
  // Answers a call that the driver has run already.
  void Return(QueuedCall& call, const std::shared_ptr<Stream>& stream, CUresult result) const;
  // lwCopyData outside streams: the bytes are where they lie in the log. False if they cannot be
  // decoded.
  bool TakeBytes(std::span<const std::byte> arguments) const;

 private:
  Session& session_;
};

// True for calls that the generator forwards, false for Longwire's own.
bool IsGenerated(CallId id);

}  // namespace longwire::worker
