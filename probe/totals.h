// What maps held in all modules and contexts of a program, added up; and how it is shown.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "policy/object.h"

namespace longwire::probe {

class Totals {
 public:
  explicit Totals(std::vector<policy::MapShape> maps);

  // Of the map's variable, as long as BytesOf says.
  void Add(size_t map, const void* contents);
  void Name(uint32_t kernel, const std::string& name) { kernels_[kernel] = name; }
  // The kernel of that hash; null: it is not known.
  const std::string* KernelOf(uint64_t hash) const;
  // Lines for a terminal.
  std::string Text() const;

 private:
  using Record = std::array<uint64_t, 4>;
  struct Total {
    std::vector<uint64_t> values;  // of an array, or a histogram's buckets
    std::vector<Record> records;   // of a ring, up to its entries
    uint64_t put = 0;              // to a ring in all
  };
  std::string ArrayText(const Total& total) const;
  std::string RingText(const Total& total, bool spans) const;

  std::vector<policy::MapShape> maps_;
  std::vector<Total> totals_;
  std::map<uint32_t, std::string> kernels_;
};

// A line with a bar for each bucket, whose number is how many bits its values have.
std::string HistogramText(const std::vector<uint64_t>& buckets);

}  // namespace longwire::probe
