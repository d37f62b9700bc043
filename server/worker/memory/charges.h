// What the session has of each device beside leased chunks: memory that the driver allocates in
// this process when the program creates an array, loads a module and so on. It is charged to the
// tenant before the driver is called, by an upper bound, and given back after the driver has freed
// it. Where the tenant has a limit every charge is exact and takes a round trip to the keeper;
// without one the keeper gives more than is asked for, which later charges use.
//
// Calls that charge wait for the keeper: those that the client waits for, on their helpers; never
// launches, and never on the log thread.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

struct Device;
class Charges;

// Bytes that are charged until this object ends.
class Charge {
 public:
  Charge() = default;
  Charge(Charge&& other) noexcept { *this = std::move(other); }
  Charge& operator=(Charge&& other) noexcept;
  ~Charge();

  uint64_t bytes() const { return bytes_; }
  // Leaves `bytes` here, and returns what is beyond.
  Charge Beyond(uint64_t bytes);
  // Takes over the other one's bytes, which are of the same device.
  void Absorb(Charge&& other);

 private:
  friend class Charges;
  Charge(Charges& charges, int32_t device, uint64_t bytes)
      : charges_(&charges), device_(device), bytes_(bytes) {}

  Charges* charges_ = nullptr;  // null: nothing is charged
  int32_t device_ = 0;
  uint64_t bytes_ = 0;
};

class Charges {
 public:
  // Asked for at once where the tenant has no limit, and kept while something is charged.
  static constexpr uint64_t kStepBytes = uint64_t{32} << 20;

  explicit Charges(std::vector<Device>& devices) : devices_(devices) {}

  // Waits for the keeper. CUDA_ERROR_OUT_OF_MEMORY: the tenant's limit is reached, and the log says
  // so. Nothing is charged for 0 bytes.
  CUresult Take(int32_t device, uint64_t bytes, Charge* charge);

  // Charges by what they are for: an object of the driver's and, for what goes with it, a context.
  enum class Kind { kArray, kLibrary, kLimit, kLocals };
  struct Key {
    Kind kind = Kind::kArray;
    uint64_t object = 0;   // id or handle
    uint32_t context = 0;  // 0: none
    auto operator<=>(const Key&) const = default;
  };
  // Adds to what is kept for the key.
  void Keep(const Key& key, Charge charge);
  uint64_t Kept(const Key& key);
  // Keeps at most these bytes for the key; `bytes` is called with the lock held.
  template <class Bytes>
  void Correct(const Key& key, Bytes bytes) {
    Charge beyond;  // ends after the lock
    base::MutexLock lock(mutex_);
    auto found = kept_.find(key);
    if (found == kept_.end()) return;
    beyond = found->second.Beyond(bytes());
    if (found->second.bytes() == 0) kept_.erase(found);
  }
  // Takes out what is kept for the object, in all contexts: dropped, it is given back.
  std::vector<std::pair<Key, Charge>> Remove(Kind kind, uint64_t object);
  void Drop(Kind kind, uint64_t object) { Remove(kind, object); }
  void DropContext(uint32_t context);
  // All that is kept for a context, in the order of kinds.
  std::vector<Key> KeysOf(uint32_t context);
  // Whether the tenant has a limit, as far as the keeper's last answer says.
  bool IsLimited(int32_t device);

 private:
  friend class Charge;
  struct Account {
    uint64_t used = 0;
    uint64_t spare = 0;     // charged and not used
    bool generous = false;  // the keeper gave more than was asked for
  };
  void Return(int32_t device, uint64_t bytes);

  std::vector<Device>& devices_;
  base::Mutex accounts_mutex_{base::ranks::kCharges};
  std::map<int32_t, Account> accounts_ LONGWIRE_GUARDED_BY(accounts_mutex_);
  base::Mutex mutex_{base::ranks::kKeptCharges};
  // Behind the accounts, to which they return when this ends.
  std::map<Key, Charge> kept_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
