#include "server/daemon/policies/memory_policy.h"

#include <chrono>
#include <utility>

#include "server/images/sealed_memory.h"

namespace longwire::daemon {
namespace {

// Not used before, also by a daemon before this one, whose policy the warden may still have.
uint64_t NumberForKeepers() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
}

}  // namespace

void MemoryPolicy::Use(std::shared_ptr<policy::Program> program, const std::string& object) {
  base::MutexLock lock(mutex_);
  if (program == program_) return;
  program_ = std::move(program);
  told_ = {};
  object_.Reset();
  if (program_ != nullptr) {
    object_ = images::NewMemory();
    if (!object_.valid() || !images::WriteAll(object_.get(), std::as_bytes(std::span(object))) ||
        !images::Seal(object_)) {
      program_->End("there is no memory to give it to the keepers");
      program_ = nullptr;
    } else {
      told_.policy = {NumberForKeepers(), program_->name(), object.size()};
    }
  }
  Tell();
}

void MemoryPolicy::Repeat() {
  base::MutexLock lock(mutex_);
  Tell();
}

void MemoryPolicy::Tell() {
  std::vector<int> files;
  if (program_ != nullptr) {
    files.resize(keeper::kPolicyDescriptors);
    files[keeper::kPolicyObject] = object_.get();
    files[keeper::kPolicyStore] = program_->store().descriptor();
  }
  if (send_(told_, files) || program_ == nullptr) return;
  program_->End(
      "longwire-warden is of an earlier release, which has no hooks of memory: restart it when no "
      "session runs");
}

}  // namespace longwire::daemon
