#include "nvml-shim/state.h"

#include <cuda.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iterator>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/connect/several_servers.h"
#include "client-shim/support/never_destroyed.h"
#include "nvml-shim/question.h"

namespace longwire::nvml {
namespace {

using Clock = std::chrono::steady_clock;

// Tools request dozens of values one after the other; they should be of one moment.
constexpr std::chrono::milliseconds kAge{50};
// A server that does not answer is not asked again at once: each time may take five seconds.
constexpr std::chrono::seconds kLostAge{1};

struct State {
  // Never held while the server is asked: a fork waits for it.
  base::Mutex mutex{base::ranks::kNvmlState};
  unsigned users LONGWIRE_GUARDED_BY(mutex) = 0;
  shim::Options options LONGWIRE_GUARDED_BY(mutex);
  View view LONGWIRE_GUARDED_BY(mutex);
  bool lost LONGWIRE_GUARDED_BY(mutex) = false;
  // A child may have a session of its own, with other devices.
  pid_t asker LONGWIRE_GUARDED_BY(mutex) = 0;
  Clock::time_point asked LONGWIRE_GUARDED_BY(mutex);
};

State& TheState();

// A child must not find the lock held by a thread that it does not have. The analysis follows no
// lock that one function takes and another one releases.
void BeforeFork() LONGWIRE_NO_THREAD_SAFETY_ANALYSIS { TheState().mutex.Lock(); }
void AfterFork() LONGWIRE_NO_THREAD_SAFETY_ANALYSIS { TheState().mutex.Unlock(); }

State& TheState() {
  static shim::NeverDestroyed<State> state;
  static const bool watched = [] {
    return pthread_atfork(BeforeFork, AfterFork, AfterFork) == 0;
  }();
  (void)watched;
  return *state;
}

void SayOnce(const std::string& sentence) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) shim::Say("%s", sentence.c_str());
}

// Adds one server's answer to those of the servers before it.
void Append(wire::ViewReply& reply, int server, wire::ViewReply* all) {
  const auto before = static_cast<uint32_t>(all->devices.size());
  std::vector<shim::Uuid> uuids;
  for (const wire::ViewedDevice& device : all->devices) uuids.push_back(device.uuid);
  for (wire::ViewedDevice& device : reply.devices) {
    shim::MakeUnlike(&uuids, &device.uuid);
    for (uint32_t& peer : device.peers) peer += before;
    for (uint32_t& peer : device.atomic_peers) peer += before;
    for (wire::ViewedAttribute& known : device.attributes) {
      if (known.attribute != CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) continue;
      known.value = shim::DomainAt(server, known.value);
    }
  }
  std::vector<wire::ViewedDevice> devices = std::move(all->devices);
  devices.insert(devices.end(), std::make_move_iterator(reply.devices.begin()),
                 std::make_move_iterator(reply.devices.end()));
  if (devices.size() > wire::kMaxDevices) devices.resize(wire::kMaxDevices);
  if (server == 0) *all = std::move(reply);
  all->devices = std::move(devices);
}

// Null when a server does not answer, or refuses.
View Ask(const shim::Options& options) {
  base::AssertNoRankedLockHeld();
  auto all = std::make_shared<wire::ViewReply>();
  std::string sentence;
  const std::vector<shim::Options> servers = shim::ServersOf(options, &sentence);
  for (const shim::Options& server : servers) {
    wire::ViewReply reply;
    if (!AskServer(server, &reply, &sentence)) {
      SayOnce(sentence);
      return nullptr;
    }
    Append(reply, server.server_number, all.get());
  }
  if (!servers.empty()) return all;
  SayOnce(sentence);
  return nullptr;
}

void Remember(State& state, View view) LONGWIRE_REQUIRES(state.mutex) {
  state.lost = view == nullptr;
  if (view != nullptr) state.view = std::move(view);
  state.asker = getpid();
  state.asked = Clock::now();
}

constexpr char kHandles[wire::kMaxDevices] = {};

}  // namespace

nvmlReturn_t AddUser() {
  State& state = TheState();
  {
    base::MutexLock lock(state.mutex);
    if (state.users > 0) {
      ++state.users;
      return NVML_SUCCESS;
    }
  }
  shim::Options options = shim::ReadOptions();
  if (options.server.empty()) return NVML_ERROR_DRIVER_NOT_LOADED;
  View view = Ask(options);
  if (view == nullptr) return NVML_ERROR_DRIVER_NOT_LOADED;
  base::MutexLock lock(state.mutex);
  ++state.users;
  state.options = std::move(options);
  Remember(state, std::move(view));
  return NVML_SUCCESS;
}

nvmlReturn_t RemoveUser() {
  State& state = TheState();
  base::MutexLock lock(state.mutex);
  if (state.users == 0) return NVML_ERROR_UNINITIALIZED;
  if (--state.users == 0) state.view.reset();
  return NVML_SUCCESS;
}

nvmlReturn_t Look(View* view) {
  State& state = TheState();
  shim::Options options;
  {
    base::MutexLock lock(state.mutex);
    if (state.users == 0) return NVML_ERROR_UNINITIALIZED;
    if (state.asker == getpid() && Clock::now() - state.asked < (state.lost ? kLostAge : kAge)) {
      *view = state.view;
      return state.lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
    }
    options = state.options;
  }
  View fresh = Ask(options);
  *view = fresh;
  base::MutexLock lock(state.mutex);
  if (state.users == 0) return NVML_ERROR_UNINITIALIZED;
  Remember(state, fresh);
  return fresh == nullptr ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

int Seen::Attribute(int attribute, int otherwise) const {
  for (const wire::ViewedAttribute& known : device->attributes) {
    if (known.attribute == attribute) return known.value;
  }
  return otherwise;
}

nvmlDevice_t HandleOf(size_t index) { return &kHandles[index]; }

nvmlReturn_t Find(nvmlDevice_t handle, Seen* seen) {
  nvmlReturn_t result = Look(&seen->view);
  if (result != NVML_SUCCESS) return result;
  size_t index = 0;
  while (index < wire::kMaxDevices && handle != HandleOf(index)) ++index;
  if (index == wire::kMaxDevices) return NVML_ERROR_INVALID_ARGUMENT;
  // There were more when the handle was given out.
  if (index >= seen->view->devices.size()) return NVML_ERROR_GPU_IS_LOST;
  seen->index = static_cast<unsigned>(index);
  seen->device = &seen->view->devices[index];
  return NVML_SUCCESS;
}

}  // namespace longwire::nvml
