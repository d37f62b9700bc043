// Memory that several programs have. The server knows shared chunks under a token, with which the
// tenant's other sessions borrow them; between the programs a token travels as 64 bytes or as a
// descriptor that can be sent over a unix socket.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <vector>

namespace longwire::shim {

using SharedToken = std::array<uint64_t, 2>;

// Whether any memory was shared with another program, or another's taken: what such memory holds is
// seen there at times that this process does not know.
bool MemoryIsShared();

CUresult ShareChunks(const std::vector<uint64_t>& chunks, SharedToken* token);

struct BorrowedChunks {
  int device = 0;  // as the program counts
  std::vector<uint64_t> chunks;
  uint64_t bytes = 0;  // of all
};

// INVALID_VALUE: no memory is shared with this session under the token. The chunks go back by
// ReturnChunks of the device's memory.
CUresult BorrowChunks(const SharedToken& token, BorrowedChunks* borrowed);

// A piece of shared memory in 64 bytes: CUipcMemHandle, CUmemPoolPtrExportData, CUipcEventHandle.
struct SharedPiece {
  enum Kind : uint64_t { kMemory = 1, kPoolMemory = 2, kEvent = 3 };
  uint64_t kind = kMemory;
  SharedToken token{};
  uint64_t offset = 0;   // bytes from the start of the first chunk
  uint64_t bytes = 0;    // of the piece
  uint64_t process = 0;  // who shared it: this process's number is OwnNumber()
  uint64_t pool = 0;     // kPoolMemory: that process's number for the pool
};
uint64_t OwnNumber();
void Pack(const SharedPiece& piece, char (&bytes)[64]);
// False if the bytes are no piece of this kind.
bool Unpack(const char (&bytes)[64], SharedPiece::Kind kind, SharedPiece* piece);

// The live allocation at the address, shared.
CUresult ShareAllocation(uint64_t address, SharedPiece* piece);

// A sealed file that holds the token; the descriptor is the caller's. OUT_OF_MEMORY if none can be
// made. `kind` tells what the token is of; another kind is not taken.
enum class TokenKind : uint64_t { kMemory = 1, kPool = 2 };
CUresult TokenToDescriptor(TokenKind kind, const SharedToken& token, int* descriptor);
bool TokenFromDescriptor(TokenKind kind, int descriptor, SharedToken* token);

}  // namespace longwire::shim
