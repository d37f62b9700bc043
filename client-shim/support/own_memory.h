// Memory of this process that may be gone or protected: that is an answer here, and no signal.
//
// Registered memory in a mapping of a file is of this kind: whoever has the file may shorten it,
// and then each access behind its end is a signal. Natively the pages stay, for they are pinned: a
// copy by the driver works on. So such ranges are noted here, and what copies the program's memory
// asks.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace longwire::shim {

// Copies each range to the target with the same index, which is as long. False if not all could be
// read, or the system does not let the process read itself in this way.
bool ReadOwnMemory(const std::vector<iovec>& ranges, const std::vector<iovec>& targets);

// Whether the word, which lies in one page, may be written. It stays as it is. Before Linux 5.14
// the answer is always yes.
bool MayWriteOwnMemory(uint64_t address);

// Copies that are errors where the memory is not there. Without the right to read and write itself
// in this way the process copies as usual.
[[nodiscard]] bool ReadFileMemory(const void* from, void* to, size_t bytes);
[[nodiscard]] bool WriteFileMemory(const void* from, void* to, size_t bytes);

// Registered ranges of mappings of files. `once` gets `error` when a copy finds that bytes are
// gone, if it is 0; it lives as long as the process.
void NoteFileMemory(uint64_t address, uint64_t bytes, std::atomic<int>* once, int error);
void ForgetFileMemory(uint64_t address);
extern std::atomic<size_t> file_memory_ranges;
inline bool AnyFileMemory() { return file_memory_ranges.load(std::memory_order_acquire) != 0; }

// Copies from and to the program's memory. Where noted memory is gone, zeros are read, nothing is
// written, and the error is set.
void CopyFromProgram(const std::byte* from, std::byte* to, size_t bytes);
void CopyToProgram(const std::byte* from, std::byte* to, size_t bytes);

// Noted memory at the address cannot be reached: sets the error, and the first time says so.
void ReportGone(uint64_t address);

}  // namespace longwire::shim
