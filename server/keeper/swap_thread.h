// The thread that moves memory between device and host, clears the host's and pins it, so that the
// keeper's loop answers others meanwhile. Jobs are done in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "server/keeper/chunk_pool.h"
#include "wire/socket.h"

namespace longwire::keeper {

class SwapThread {
 public:
  // `clears` is false only to show that the clearing's test can fail.
  SwapThread(DeviceMemory& device, bool clears);
  ~SwapThread();  // finishes the job it has

  void Add(std::vector<SwapJob> jobs);
  size_t waiting() const { return waiting_; }  // jobs that were not taken back yet
  // Readable when jobs are done; then Take hands them back, with their codes.
  int descriptor() const { return event_.get(); }
  std::vector<SwapJob> Take();

 private:
  void Run();
  void Do(SwapJob& job);

  DeviceMemory& device_;
  const bool clears_;
  wire::Descriptor event_;
  size_t waiting_ = 0;  // used by the owner's thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<SwapJob> jobs_;
  std::vector<SwapJob> done_;
  bool stop_ = false;
  std::thread thread_;  // last: starts when all of the above exists
};

}  // namespace longwire::keeper
