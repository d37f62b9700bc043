#include "policy/maps.h"

#include <algorithm>
#include <bit>

#include "policy/include/longwire/policy.h"

namespace longwire::policy {

namespace {

class ArrayMap final : public Map {
 public:
  explicit ArrayMap(uint32_t entries) : values_(entries) {}

  std::optional<uint64_t> Get(uint64_t key) const override {
    if (key >= values_.size()) return std::nullopt;
    return values_[key].load(std::memory_order_relaxed);
  }
  bool Set(uint64_t key, uint64_t value) override {
    if (key >= values_.size()) return false;
    values_[key].store(value, std::memory_order_relaxed);
    return true;
  }
  std::optional<uint64_t> Add(uint64_t key, uint64_t value) override {
    if (key >= values_.size()) return std::nullopt;
    return values_[key].fetch_add(value, std::memory_order_relaxed) + value;
  }
  std::vector<std::pair<uint64_t, uint64_t>> Entries() const override {
    std::vector<std::pair<uint64_t, uint64_t>> entries;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (const uint64_t value = values_[i].load()) entries.emplace_back(i, value);
    }
    return entries;
  }

 private:
  std::vector<std::atomic<uint64_t>> values_;
};

// Open addressing. A key stays once it is there; half of the slots stay empty. Who chooses keys
// that collide gets no room for more of them than a hook may look through.
constexpr size_t kMaxProbes = 128;

class HashMap final : public Map {
 public:
  explicit HashMap(uint32_t entries)
      : most_(entries), slots_(std::bit_ceil(uint64_t{entries} * 2)) {}

  std::optional<uint64_t> Get(uint64_t key) const override {
    base::MutexLock lock(mutex_);
    const Slot* slot = Find(key);
    if (slot == nullptr || !slot->used) return std::nullopt;
    return slot->value;
  }
  bool Set(uint64_t key, uint64_t value) override {
    base::MutexLock lock(mutex_);
    Slot* slot = Take(key);
    if (slot != nullptr) slot->value = value;
    return slot != nullptr;
  }
  std::optional<uint64_t> Add(uint64_t key, uint64_t value) override {
    base::MutexLock lock(mutex_);
    Slot* slot = Take(key);
    if (slot == nullptr) return std::nullopt;
    return slot->value += value;
  }
  std::vector<std::pair<uint64_t, uint64_t>> Entries() const override {
    std::vector<std::pair<uint64_t, uint64_t>> entries;
    {
      base::MutexLock lock(mutex_);
      for (const Slot& slot : slots_) {
        if (slot.used && slot.value != 0) entries.emplace_back(slot.key, slot.value);
      }
    }
    std::sort(entries.begin(), entries.end());
    return entries;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    uint64_t value = 0;
    bool used = false;
  };

  // Where the key is, or would be; null: it has no room.
  const Slot* Find(uint64_t key) const LONGWIRE_REQUIRES(mutex_) {
    // Fibonacci hashing: the upper bits of the product depend on all of the key.
    const size_t home = (key * 0x9e3779b97f4a7c15) >> 32;
    for (size_t probe = 0; probe < kMaxProbes; ++probe) {
      const Slot& slot = slots_[(home + probe) & (slots_.size() - 1)];
      if (!slot.used || slot.key == key) return &slot;
    }
    return nullptr;
  }
  Slot* Take(uint64_t key) LONGWIRE_REQUIRES(mutex_) {
    auto* slot = const_cast<Slot*>(Find(key));
    if (slot == nullptr || slot->used) return slot;
    if (count_ == most_) return nullptr;
    ++count_;
    *slot = {key, 0, true};
    return slot;
  }

  const uint32_t most_;
  mutable base::Mutex mutex_{base::ranks::kPolicyMap};
  uint32_t count_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::vector<Slot> slots_ LONGWIRE_GUARDED_BY(mutex_);
};

std::unique_ptr<Map> MakeMap(const MapShape& shape) {
  if (shape.type == LW_ARRAY) return std::make_unique<ArrayMap>(shape.entries);
  return std::make_unique<HashMap>(shape.entries);
}

}  // namespace

Maps::Maps(const std::vector<MapShape>& shapes) : shapes_(shapes) {
  for (const MapShape& shape : shapes_) maps_.push_back(MakeMap(shape));
}

Map* Maps::Find(const std::string& name) const {
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (shapes_[i].name == name) return maps_[i].get();
  }
  return nullptr;
}

}  // namespace longwire::policy
