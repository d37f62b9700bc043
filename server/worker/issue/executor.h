// Runs calls. It is implemented in calls/, which can use the whole session; the classes that issue
// calls know only this interface.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "server/worker/support/objects.h"

namespace longwire::worker {

class WorkerSession;

class Executor {
 public:
  explicit Executor(WorkerSession& session) : session_(session) {}

  // Decodes and runs one call on this thread and sends its reply. Returns kNotYet if it must be
  // tried again. `stream` is null for calls outside streams.
  CUresult Execute(QueuedCall& call, const std::shared_ptr<Stream>& stream) const;
  // Sends the reply of a call that is not run.
  void Refuse(const QueuedCall& call, CUresult code) const;
  // Sends the reply of a call that the driver has run already.
  void Return(QueuedCall& call, const std::shared_ptr<Stream>& stream, CUresult result) const;
  // lwCopyData outside streams. `arguments` are read in the log's memory, without a copy. False if
  // they cannot be decoded.
  bool TakeBytes(std::span<const std::byte> arguments) const;

 private:
  WorkerSession& session_;
};

// True for calls that the generator forwards, false for Longwire's own.
bool IsGenerated(CallId id);

}  // namespace longwire::worker
