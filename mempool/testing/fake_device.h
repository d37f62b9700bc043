// A device for tests of the pool: it counts calls, fails the n-th, keeps account of every byte, and
// notes what the pool must never do.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "mempool/device.h"

namespace longwire::mempool::testing {

// A stream: work is handed to it, and finishes when the test says so.
struct FakeStream {
  uint64_t last = 0;
  uint64_t finished = 0;
  uint64_t in_front = 0;  // up to where all later work comes behind it
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(uint64_t bytes) : total_(bytes) {}

  // The n-th lease, mapping or remapping from now on fails; 0: none does.
  void FailAt(uint64_t nth) { fail_in_ = nth; }
  uint64_t calls() const { return leases + maps + remaps; }
  // Larger chunks are given as several of at most `bytes`.
  void SetLargest(uint64_t bytes) { largest_ = bytes; }
  // Whether it puts work behind marks.
  void SetPuttingBehind(bool puts) { puts_behind_ = puts; }
  // Unmappings and returns whose turn comes; by default all.
  void Finish(size_t count = SIZE_MAX);
  // What is queued is over the moment after a lease has failed, or the unmapped was looked at.
  void FinishUnseen() { unseen_ = true; }
  bool finishes_unseen() const { return unseen_; }
  Mark NewMark(FakeStream& stream);

  // With and without what is on its way back.
  uint64_t physical() const { return physical_; }
  uint64_t leased() const { return leased_; }
  uint64_t physical_peak() const { return physical_peak_; }
  size_t chunks() const { return chunks_.size(); }
  uint64_t mapped() const { return mapped_bytes_; }
  int64_t marks() const { return marks_; }  // that were not dropped
  // What is mapped at the address; false if nothing is.
  struct Physical {
    uint64_t chunk = 0;
    uint64_t offset = 0;
    uint64_t left = 0;  // to the chunk's end
  };
  bool Find(uint64_t address, Physical* physical) const;
  // The first thing that went wrong; empty if all is well.
  const std::string& fault() const { return fault_; }

  int Lease(const std::vector<uint64_t>& bytes, std::vector<Chunk>* chunks) override;
  void Return(const std::vector<Chunk>& chunks) override;
  int Map(uint64_t address, const std::vector<Chunk>& chunks) override;
  void Unmap(const Range& range) override;
  std::vector<Range> TakeUnmapped() override;
  int Remap(const Range& unmap, const std::vector<Chunk>& chunks, uint64_t moved) override;
  bool Pending() override { return !unmapping_.empty() || !returning_.empty(); }
  bool Passed(const Mark& mark) override;
  bool PutAllBehind(const Mark& mark) override;
  void Drop(const Mark& mark) override;

  uint64_t leases = 0, maps = 0, unmaps = 0, returns = 0, remaps = 0;
  uint64_t moved_bytes = 0;  // by Remap

 private:
  struct Held {
    uint64_t bytes = 0;
    uint32_t mappings = 0;  // but for those whose unmapping is queued
  };
  bool Fails();
  // `others`: how often the chunk is mapped already.
  void MapOne(uint64_t address, const Chunk& chunk, uint32_t others);
  void EraseMappings(const Range& range);
  void Fault(const std::string& what);

  const uint64_t total_;
  uint64_t fail_in_ = 0;
  uint64_t largest_ = UINT64_MAX;
  bool unseen_ = false;
  bool puts_behind_ = false;
  uint64_t next_chunk_ = 1;
  uint64_t leased_ = 0, physical_ = 0, physical_peak_ = 0, mapped_bytes_ = 0;
  int64_t marks_ = 0;
  std::map<uint64_t, Held> chunks_;
  std::map<uint64_t, Chunk> mappings_;  // by address; those being unmapped too
  std::deque<Range> unmapping_;
  std::deque<Chunk> returning_;
  std::vector<Range> unmapped_;
  std::string fault_;
};

}  // namespace longwire::mempool::testing
