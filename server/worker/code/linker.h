// A link at run time (cuLinkCreate): the driver's state and the memory that must live as long.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/code/jit_options.h"
#include "server/worker/support/driver.h"
#include "server/worker/support/host_memory.h"

namespace longwire::worker {

// Only one thread links at a time, and no module is unloaded meanwhile. NVIDIA's driver once
// crashed in its linker while another thread unloaded code that it had linked before. Whether that
// was the cause is not known, and waiting costs nothing.
inline base::Mutex& DriversLinker() {
  static base::Mutex mutex{base::ranks::kDriversLinker};
  return mutex;
}

// Puts the outputs of the options into a reply.
template <class Context, class Reply>
void TellOutputs(Context& context, const JitOptions& options, Reply* reply) {
  reply->info_log = context.Keep(options.info_log());
  reply->error_log = context.Keep(options.error_log());
  options.Tell(&reply->outputs);
}

// By its documentation the driver keeps no reference to an input, but NVIDIA's compiler crashed in
// cuLinkComplete after inputs were freed. So inputs live as long as the link.
struct LinkInput {
  LinkInput(std::vector<std::byte> bytes, std::string_view called,
            const std::vector<uint32_t>& option, const std::vector<uint64_t>& value)
      : data(std::move(bytes)), name(called), options(option, value, JitOptions::Outputs::kNone) {}
  std::vector<std::byte> data;
  std::string name;
  JitOptions options;  // without logs, which belong to the link
  HostMemory::Share share;
};

struct Linker {
  Linker(const DriverTable& table, const std::vector<uint32_t>& option,
         const std::vector<uint64_t>& value)
      : driver(table), options(option, value) {}
  ~Linker() {
    if (state == nullptr) return;
    base::MutexLock lock(DriversLinker());
    driver.cuLinkDestroy(state);
  }
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  const DriverTable& driver;
  base::Mutex mutex{base::ranks::kLinker};  // one call of the driver at a time
  JitOptions options;                       // the driver writes into its logs up to the end
  std::deque<LinkInput> inputs;
  HostMemory::Share share;  // of its options and logs
  CUlinkState state = nullptr;
  std::span<const std::byte> image;  // the state's own memory
};

}  // namespace longwire::worker
