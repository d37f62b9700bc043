// Arrays of a session that moves: which there are, and their bytes row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/worker/process/snapshot.h"

namespace longwire::worker {

// Rows lie one after the other, slice after slice (of a layered array: layer after layer).
struct ArrayRows {
  uint64_t row_bytes = 0;
  uint64_t rows = 0;  // of a slice
  uint64_t slices = 0;
  uint64_t bytes() const { return row_bytes * rows * slices; }
};

// All arrays, and the levels of mipmapped ones, by their journal entries. A sentence if one is of a
// kind whose bytes cannot be read.
std::string FindArrays(WorkerSession& session, std::vector<Contents>* arrays);
// The array that `contents` names; an error if there is none.
CUresult ArrayOf(WorkerSession& session, const Contents& contents, CUarray* array, ArrayRows* rows);
// `count` rows from number `first` on, counted through all slices. A context is current.
CUresult CopyRows(const DriverTable& driver, CUarray array, const ArrayRows& rows, uint64_t first,
                  uint64_t count, std::byte* host, bool to_host);

}  // namespace longwire::worker
