#include "policy/maps.h"

#include <algorithm>
#include <bit>

#include "policy/include/longwire/policy.h"

namespace longwire::policy {

namespace {

class ArrayMap final : public Map {
 public:
  explicit ArrayMap(Words values) : values_(values) {}

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
  const Words values_;
};

// Open addressing. A key stays once it is there; half of the slots stay empty. Who chooses keys
// that collide gets no room for more of them than a hook may look through. Threads that take the
// last keys at the same moment may each get one: there are slots for them.
constexpr size_t kMaxProbes = 128;

// One word claims a slot, so a key is never there twice: the key, changed so that zero means that
// the slot is empty. The one key that would be zero then has a slot of its own, the last.
constexpr uint64_t kChanged = 0x6c6f6e6777697265;
constexpr uint64_t kLastTaken = 1;

class HashMap final : public Map {
 public:
  static uint64_t SlotsOf(uint32_t entries) { return std::bit_ceil(uint64_t{entries} * 2); }
  // The number of keys, then the slots, each a key and its value.
  static size_t WordsOf(uint32_t entries) { return 1 + 2 * (SlotsOf(entries) + 1); }

  HashMap(uint32_t entries, Words words)
      : most_(entries), slots_(SlotsOf(entries)), count_(words[0]), words_(words.subspan(1)) {}

  std::optional<uint64_t> Get(uint64_t key) const override {
    const auto slot = Find(key);
    if (!slot || !Holds(*slot, key)) return std::nullopt;
    return ValueAt(*slot).load(std::memory_order_relaxed);
  }
  bool Set(uint64_t key, uint64_t value) override {
    const auto slot = Take(key);
    if (slot) ValueAt(*slot).store(value, std::memory_order_relaxed);
    return slot.has_value();
  }
  std::optional<uint64_t> Add(uint64_t key, uint64_t value) override {
    const auto slot = Take(key);
    if (!slot) return std::nullopt;
    return ValueAt(*slot).fetch_add(value, std::memory_order_relaxed) + value;
  }
  std::vector<std::pair<uint64_t, uint64_t>> Entries() const override {
    std::vector<std::pair<uint64_t, uint64_t>> entries;
    for (size_t slot = 0; slot <= slots_; ++slot) {
      const uint64_t taken = KeyAt(slot).load(std::memory_order_acquire);
      const uint64_t value = ValueAt(slot).load(std::memory_order_relaxed);
      const uint64_t key = slot == slots_ ? kChanged : taken ^ kChanged;
      if (taken != 0 && value != 0) entries.emplace_back(key, value);
    }
    std::sort(entries.begin(), entries.end());
    return entries;
  }

 private:
  std::atomic<uint64_t>& KeyAt(size_t slot) const { return words_[2 * slot]; }
  std::atomic<uint64_t>& ValueAt(size_t slot) const { return words_[2 * slot + 1]; }
  static uint64_t TakenBy(uint64_t key) { return key == kChanged ? kLastTaken : key ^ kChanged; }

  // Where the key is, or would be; none: it has no room.
  std::optional<size_t> Find(uint64_t key) const {
    if (key == kChanged) return slots_;
    // Fibonacci hashing: the upper bits of the product depend on all of the key.
    const size_t home = (key * 0x9e3779b97f4a7c15) >> 32;
    for (size_t probe = 0; probe < kMaxProbes; ++probe) {
      const size_t slot = (home + probe) & (slots_ - 1);
      const uint64_t taken = KeyAt(slot).load(std::memory_order_acquire);
      if (taken == 0 || taken == TakenBy(key)) return slot;
    }
    return std::nullopt;
  }
  // A slot that was empty may have been taken since, by a key that collides.
  bool Holds(size_t slot, uint64_t key) const {
    return KeyAt(slot).load(std::memory_order_acquire) == TakenBy(key);
  }
  std::optional<size_t> Take(uint64_t key) {
    for (;;) {
      const auto slot = Find(key);
      if (!slot || Holds(*slot, key)) return slot;
      if (count_.load(std::memory_order_acquire) >= most_) {
        // Who counted the last one has taken its slot before: perhaps for this key.
        const auto again = Find(key);
        return again && Holds(*again, key) ? again : std::nullopt;
      }
      uint64_t taken = 0;
      if (KeyAt(*slot).compare_exchange_strong(taken, TakenBy(key))) {
        count_.fetch_add(1, std::memory_order_release);
        return slot;
      }
      // Another thread was first, for this key or for one that collides.
    }
  }

  const uint32_t most_;
  const uint64_t slots_;
  std::atomic<uint64_t>& count_;
  const Words words_;
};

size_t WordsOf(const MapShape& shape) {
  return shape.type == LW_ARRAY ? shape.entries : HashMap::WordsOf(shape.entries);
}

}  // namespace

Maps::Maps(const std::vector<MapShape>& shapes, Words words) : shapes_(shapes) {
  for (const MapShape& shape : shapes_) {
    const Words own = words.first(policy::WordsOf(shape));
    words = words.subspan(own.size());
    if (shape.type == LW_ARRAY) {
      maps_.push_back(std::make_unique<ArrayMap>(own));
    } else {
      maps_.push_back(std::make_unique<HashMap>(shape.entries, own));
    }
  }
}

size_t Maps::WordsOf(const std::vector<MapShape>& shapes) {
  size_t words = 0;
  for (const MapShape& shape : shapes) words += policy::WordsOf(shape);
  return words;
}

Map* Maps::Find(const std::string& name) const {
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (shapes_[i].name == name) return maps_[i].get();
  }
  return nullptr;
}

}  // namespace longwire::policy
