// Memory that processes of one host share: a sealed file of fixed size. Nobody can take pages away
// by its size from who has it mapped; its pages exist once they were used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "wire/socket.h"

namespace longwire::wire {

// Seals: the size stays what it is.
Descriptor MakeSegment(const char* name, uint64_t bytes);  // invalid on failure
// Whether what another process handed over is such a file of that size.
bool IsSegment(int descriptor, uint64_t bytes);

// All of it, mapped.
class SegmentMapping {
 public:
  // nullptr on failure.
  static std::unique_ptr<SegmentMapping> Map(int descriptor, uint64_t bytes);
  ~SegmentMapping();
  SegmentMapping(const SegmentMapping&) = delete;
  SegmentMapping& operator=(const SegmentMapping&) = delete;
  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  SegmentMapping(std::byte* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  uint64_t bytes_;
};

}  // namespace longwire::wire
