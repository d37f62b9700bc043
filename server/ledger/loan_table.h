// What one device's keeper has lent, in memory that outlives the keeper: the warden makes it, the
// keeper writes each loan down before a worker gets it, and its successor reads it. A keeper
// can be killed between any two stores: an entry counts from the store of its kind on, and until
// that is taken back. So the table of loans has every chunk that a worker may have, and perhaps
// some that a worker does not have; the workers say which (server/protocol/reattach.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wire/socket.h"

namespace longwire::keeper {

class LoanTable {
 public:
  // Entries of chunks, of borrowers, of workers and of promises together. Pages that have none take
  // no memory.
  static constexpr uint32_t kSlots = 1 << 20;

  struct Chunk {
    uint64_t chunk = 0;
    uint64_t bytes = 0;
    uint64_t worker = 0;
  };
  struct Borrowed {
    uint64_t chunk = 0;
    uint64_t worker = 0;
    uint32_t times = 0;
  };
  struct Worker {
    uint64_t worker = 0;
    uint64_t charged = 0;  // bytes beside chunks
    uint32_t version = 0;  // that it speaks; 0: not known
  };

  // What the worker was promised (server/protocol/promises.h), in bytes.
  struct Promise {
    uint64_t worker = 0;
    uint64_t bytes = 0;
  };

  static std::unique_ptr<LoanTable> Create();
  static std::unique_ptr<LoanTable> Map(wire::Descriptor memory);  // nullptr: it is none
  ~LoanTable();

  // Reads all entries, in no order, and continues from there.
  struct Content {
    std::vector<Chunk> chunks;
    std::vector<Borrowed> borrowed;
    std::vector<Worker> workers;
    std::vector<Promise> promises;
  };
  Content Read();
  // No chunk has this number or a larger one.
  uint64_t next_chunk() const;
  void SetNextChunk(uint64_t chunk);

  bool HasRoom(size_t entries) const;
  void Lend(const Chunk& chunk);
  void HandOver(uint64_t chunk, uint64_t worker);
  void SetBorrowed(const Borrowed& borrowed);  // 0 times: no longer
  void Remove(uint64_t chunk);                 // ignored if it was not lent
  void SetVersion(uint64_t worker, uint32_t version);
  void SetCharged(uint64_t worker, uint64_t bytes);
  // False: the table has no room for it. 0: none any more.
  bool SetPromised(uint64_t worker, uint64_t bytes);
  void Forget(uint64_t worker);  // which has no chunks any more

  int descriptor() const { return memory_.get(); }

 private:
  struct Slot;
  struct Table;
  LoanTable() = default;
  static std::unique_ptr<LoanTable> Of(wire::Descriptor memory);
  uint32_t NewSlot();
  void Clear(uint32_t slot);
  Slot& WorkerSlot(uint64_t worker);

  wire::Descriptor memory_;
  Table* table_ = nullptr;
  // Where entries are; this process's own.
  uint32_t used_ = 0;           // slots that were ever in use
  std::vector<uint32_t> free_;  // of these
  std::unordered_map<uint64_t, uint32_t> chunks_;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> borrowed_;  // by chunk and worker
  std::unordered_map<uint64_t, uint32_t> workers_;
  std::unordered_map<uint64_t, uint32_t> promises_;  // by worker
};

}  // namespace longwire::keeper
