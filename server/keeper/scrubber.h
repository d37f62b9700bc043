// The thread that clears memory, so that the keeper's loop answers others meanwhile.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "server/keeper/chunk_pool.h"
#include "wire/socket.h"

namespace longwire::keeper {

class Scrubber {
 public:
  explicit Scrubber(DeviceMemory& device);
  ~Scrubber();  // finishes the batch it has

  // One batch at a time: only when !busy().
  void Begin(std::vector<ScrubJob> jobs);
  bool busy() const { return busy_; }
  // Readable when the batch is done; then Take hands it back, with its codes.
  int descriptor() const { return event_.get(); }
  std::vector<ScrubJob> Take();

 private:
  void Run();

  DeviceMemory& device_;
  wire::Descriptor event_;
  bool busy_ = false;  // used by the owner's thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<ScrubJob> jobs_;
  std::vector<ScrubJob> done_;
  bool stop_ = false;
  std::thread thread_;  // last: starts when all of the above exists
};

}  // namespace longwire::keeper
