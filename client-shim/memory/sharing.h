// Memory that several programs share. The server gives shared chunks a token, with which the
// tenant's other sessions borrow them. Programs pass a token on as 64 bytes or as a descriptor that
// can be sent over a unix socket.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <vector>

namespace longwire::shim {

class ClientSession;

using SharedToken = std::array<uint64_t, 2>;

// Whether this program shared memory with another one or borrowed some. The other program may read
// and write such memory at any time.
bool MemoryIsShared();

CUresult ShareChunks(ClientSession& session, const std::vector<uint64_t>& chunks,
                     SharedToken* token);

struct BorrowedChunks {
  int device = 0;  // as the program counts
  std::vector<uint64_t> chunks;
  uint64_t bytes = 0;  // of all
};

// CUDA_ERROR_INVALID_VALUE if no memory is shared with this session under the token. The chunks go
// back by DeviceMemory::ReturnChunks.
CUresult BorrowChunks(const SharedToken& token, BorrowedChunks* borrowed);

// A piece of shared memory in 64 bytes: CUipcMemHandle, CUmemPoolPtrExportData, CUipcEventHandle.
struct SharedPiece {
  enum Kind : uint64_t { kMemory = 1, kPoolMemory = 2, kEvent = 3 };
  uint64_t kind = kMemory;
  SharedToken token{};
  uint64_t offset = 0;   // bytes from the start of the first chunk
  uint64_t bytes = 0;    // of the piece
  uint64_t process = 0;  // OwnNumber() of the process that shared it
  uint64_t pool = 0;     // kPoolMemory: that process's number for the pool
};
uint64_t OwnNumber();
void Pack(const SharedPiece& piece, char (&bytes)[64]);
// False if the bytes are not a piece of this kind.
bool Unpack(const char (&bytes)[64], SharedPiece::Kind kind, SharedPiece* piece);

// Shares the allocation that contains the address.
CUresult ShareAllocation(uint64_t address, SharedPiece* piece);

// Writes the token into a sealed file; the caller owns the descriptor. CUDA_ERROR_OUT_OF_MEMORY if
// the file cannot be made. TokenFromDescriptor accepts only a token of the same kind.
enum class TokenKind : uint64_t { kMemory = 1, kPool = 2 };
CUresult TokenToDescriptor(TokenKind kind, const SharedToken& token, int* descriptor);
bool TokenFromDescriptor(TokenKind kind, int descriptor, SharedToken* token);

}  // namespace longwire::shim
