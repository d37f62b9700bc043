// Transfers of bytes between the program's memory and the worker, by id: where arriving bytes are
// stored, and which bytes the worker may request.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/session/coverage.h"

namespace longwire::shim {

// A region of the program's memory, as rows. Packed, as on the wire, it has width * rows * slices
// bytes.
struct HostPlace {
  std::byte* base = nullptr;  // of the first row
  uint64_t pitch = 0;         // bytes from row to row
  uint64_t slice_pitch = 0;   // bytes from slice to slice
  uint64_t width = 0;         // bytes of a row
  uint64_t rows = 1;
  uint64_t slices = 1;

  static HostPlace Linear(const void* base, uint64_t bytes) {
    return {static_cast<std::byte*>(const_cast<void*>(base)), bytes, bytes, bytes, 1, 1};
  }
  uint64_t bytes() const { return width * rows * slices; }
  // Bytes from the first to the last one of the region, with the gaps between rows.
  uint64_t span() const { return (slices - 1) * slice_pitch + (rows - 1) * pitch + width; }
  // Copies packed bytes from `offset` on to their rows, or the rows to packed bytes. The caller has
  // checked that offset + size is within bytes().
  void Scatter(uint64_t offset, std::span<const std::byte> packed) const;
  void Gather(uint64_t offset, std::span<std::byte> packed) const;
};

class Transfers {
 public:
  // Announces where a transfer's bytes are to be stored. A persistent one (of a graph) stays.
  void ExpectDownload(uint64_t transfer, const HostPlace& place, bool persistent);
  // Nothing of this transfer is written after this returns.
  void DropDownload(uint64_t transfer) LONGWIRE_EXCLUDES(mutex_);
  // Whether bytes of copies that were queued have not come yet; those of graphs do not count.
  bool AwaitsBytes() LONGWIRE_EXCLUDES(mutex_);
  bool FindDownload(uint64_t transfer, HostPlace* place);
  // Stores bytes that arrived. False if they are outside the announced range, have come before, or
  // are a graph's while none of those that write is running: then nothing is stored. Any thread.
  bool Arrive(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes);

  // Waits until `bytes` of a download have arrived, or the download was dropped. False if the
  // deadline passes first.
  bool WaitLanded(uint64_t transfer, uint64_t bytes, std::chrono::steady_clock::time_point deadline)
      LONGWIRE_EXCLUDES(mutex_);
  // False if the transfer has fewer.
  bool CanLand(uint64_t transfer, uint64_t bytes) LONGWIRE_EXCLUDES(mutex_);

  // A launch of a graph that writes the program's memory begins, before it is queued, and ends.
  void BeginGraphWrites() { graph_writes_.fetch_add(1); }
  void EndGraphWrites() { graph_writes_.fetch_sub(1); }
  bool GraphsWrite() const { return graph_writes_.load() != 0; }

  // The same for one that reads it. Nothing reads for graphs any more once the last one has ended.
  void BeginGraphReads() LONGWIRE_EXCLUDES(mutex_);
  void EndGraphReads() LONGWIRE_EXCLUDES(mutex_);
  // Whether any graph may read the program's memory.
  bool GraphsCanRead() const { return offered_to_graphs_.load() != 0; }

  // Announces bytes that the worker may request later.
  void OfferUpload(uint64_t transfer, const HostPlace& place, bool persistent);
  void DropUpload(uint64_t transfer);
  bool FindUpload(uint64_t transfer, HostPlace* place);
  // The worker has requested it. DropUploadsOf waits for it from here to UploadRead. kTwice: it was
  // requested before, or a graph's so often that no launches can have done that.
  enum class Taken { kNow, kGone, kTwice };
  struct Request {
    uint64_t transfer = 0;
    HostPlace place;
    bool persistent = false;
    uint64_t era = 0;  // of the graphs that read
  };
  Taken TakeUpload(uint64_t transfer, Request* request);
  void UploadRead(uint64_t transfer);
  // Its copy has finished, whoever says so: nothing of it is read after this returns.
  void EndUpload(uint64_t transfer) LONGWIRE_EXCLUDES(mutex_);
  // The same for all uploads, at the session's end. Waits for at most a second: a forked process
  // lacks the threads that read.
  void EndUploads() LONGWIRE_EXCLUDES(mutex_);
  // Around each read of some of its bytes, which waits for nothing. False if it has ended.
  bool BeginRead(const Request& request) LONGWIRE_EXCLUDES(mutex_);
  void EndRead(const Request& request) LONGWIRE_EXCLUDES(mutex_);
  // Before memory is freed: after this returns no upload reads it, except those of graphs that are
  // launched again.
  void DropUploadsOf(uint64_t address, uint64_t bytes) LONGWIRE_EXCLUDES(mutex_);

  // The same for an image: the worker may request it once, until it is withdrawn. WithdrawImage
  // waits for a thread that reads it, from TakeImage to ImageRead.
  void OfferImage(uint64_t transfer, const HostPlace& place);
  void WithdrawImage(uint64_t transfer) LONGWIRE_EXCLUDES(mutex_);
  bool TakeImage(uint64_t transfer, HostPlace* place);
  void ImageRead(uint64_t transfer);

 private:
  struct Entry {
    HostPlace place;
    uint64_t missing = 0;  // bytes
    bool persistent = false;
    uint64_t landed = 0;  // bytes
    uint32_t users = 0;   // threads that write into the place, or read it
    uint32_t reads = 0;   // of those, the reads that are under way
    bool ended = false;   // of an upload
    Coverage came;        // of what is not persistent

    bool Overlaps(uint64_t address, uint64_t size) const {
      auto start = reinterpret_cast<uint64_t>(place.base);
      return start < address + size && address < start + place.span();
    }
  };
  struct OfferedImage {
    HostPlace place;
    bool taken = false;
    bool being_read = false;
  };

  bool DownloadIsInUse(uint64_t transfer) const LONGWIRE_REQUIRES(mutex_);
  bool HasLanded(uint64_t transfer, uint64_t bytes) const LONGWIRE_REQUIRES(mutex_);
  bool MayArrive(Entry& entry, uint64_t offset, uint64_t bytes) const LONGWIRE_REQUIRES(mutex_);
  bool AnyUploadInUse(uint64_t address, uint64_t bytes) const LONGWIRE_REQUIRES(mutex_);
  bool UploadIsRead(uint64_t transfer) const LONGWIRE_REQUIRES(mutex_);
  bool GraphsAreRead() const LONGWIRE_REQUIRES(mutex_);
  void EraseUpload(uint64_t transfer) LONGWIRE_REQUIRES(mutex_);

  base::Mutex mutex_{base::ranks::kTransfers};
  base::CondVar landed_;  // bytes, or a user has finished
  std::unordered_map<uint64_t, Entry> downloads_ LONGWIRE_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, Entry> uploads_ LONGWIRE_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, OfferedImage> images_ LONGWIRE_GUARDED_BY(mutex_);
  base::CondVar image_read_;
  std::atomic<uint64_t> graph_writes_{0};  // launches
  uint64_t graph_reads_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t era_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // how often the last reading graph has ended
  bool over_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::atomic<size_t> offered_to_graphs_{0};
};

}  // namespace longwire::shim
