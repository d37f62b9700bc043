// A link at run time: the driver's state and what has to live as long.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/code/jit_options.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

// The driver links for one at a time, and no module ends beside it. NVIDIA's driver once died in
// its linker while another thread unloaded what it had linked before; whether that was the reason
// is not known, and waiting costs nothing.
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

// The driver says that it keeps nothing of an input, but NVIDIA's compiler died in cuLinkComplete
// where inputs had gone by then: they live as long as the link.
struct LinkInput {
  LinkInput(std::vector<std::byte> bytes, std::string_view called,
            const std::vector<uint32_t>& option, const std::vector<uint64_t>& value)
      : data(std::move(bytes)), name(called), options(option, value, JitOptions::Outputs::kNone) {}
  std::vector<std::byte> data;
  std::string name;
  JitOptions options;  // the logs are the link's; here only what else was given counts
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
  CUlinkState state = nullptr;
  std::span<const std::byte> image;  // the state's own memory
};

}  // namespace longwire::worker
