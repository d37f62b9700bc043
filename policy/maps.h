// A policy's maps: 64-bit keys and values. Hooks on any thread, in longwired and in keepers, the
// command line and the metrics use them at once. Of bounded size, all in memory that exists when
// the policy is loaded (store.h), and without locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policy/object.h"

namespace longwire::policy {

using Words = std::span<std::atomic<uint64_t>>;

class Map {
 public:
  virtual ~Map() = default;
  // None: there is no such key.
  virtual std::optional<uint64_t> Get(uint64_t key) const = 0;
  // False: an array has no such key, a hash has no room.
  virtual bool Set(uint64_t key, uint64_t value) = 0;
  // The new value; none as above.
  virtual std::optional<uint64_t> Add(uint64_t key, uint64_t value) = 0;
  // What is not zero, by key.
  virtual std::vector<std::pair<uint64_t, uint64_t>> Entries() const = 0;
};

class Maps {
 public:
  // `words`: WordsOf(shapes) of them, zero at first.
  Maps(const std::vector<MapShape>& shapes, Words words);
  static size_t WordsOf(const std::vector<MapShape>& shapes);

  // Null: there is none.
  Map* At(uint64_t index) const { return index < maps_.size() ? maps_[index].get() : nullptr; }
  Map* Find(const std::string& name) const;
  const std::vector<MapShape>& shapes() const { return shapes_; }

 private:
  std::vector<MapShape> shapes_;
  std::vector<std::unique_ptr<Map>> maps_;
};

}  // namespace longwire::policy
