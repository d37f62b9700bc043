// Memory that processes of one host share: a memory file that is sealed against resizing, so that
// no process can shrink it under another's mapping. Its pages are allocated when they are first
// used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "wire/socket.h"

namespace longwire::wire {

// Creates a sealed memory file.
Descriptor MakeSegment(const char* name, uint64_t bytes);  // invalid on failure
// True if a descriptor received from another process is such a file of this size.
bool IsSegment(int descriptor, uint64_t bytes);

// A mapping of the whole segment.
class SegmentMapping {
 public:
  // nullptr on failure.
  static std::unique_ptr<SegmentMapping> Map(int descriptor, uint64_t bytes);
  // The same at this address; also nullptr if something else is mapped there.
  static std::unique_ptr<SegmentMapping> MapAt(int descriptor, uint64_t bytes, uint64_t address);
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
