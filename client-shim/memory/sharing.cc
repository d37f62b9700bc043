#include "client-shim/memory/sharing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/memory_sizes.h"
#include "base/try.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/early_copies.h"
#include "longwire/calls.h"
#include "wire/descriptors.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kPieceMark = 0x31656365'69705f4c;  // "L_piece1"
constexpr uint64_t kTokenMark = 0x316e656b'6f745f4c;  // "L_token1"
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

struct TokenFile {
  uint64_t mark = kTokenMark;
  uint64_t kind = 0;
  SharedToken token{};
};

struct PackedPiece {
  uint64_t mark = kPieceMark;
  SharedPiece piece;
};
static_assert(sizeof(PackedPiece) == 64);

std::atomic<bool> memory_is_shared{false};

// From now on no copy returns to the program before it has finished.
CUresult BeginSharing() {
  memory_is_shared.store(true);
  return AwaitEarlyCopies(nullptr);
}

// Their sum is a size of memory, too.
bool AreChunks(const calls::lwBorrow::Reply& lent) {
  uint64_t sum = 0;
  for (uint64_t bytes : lent.bytes) {
    if (bytes == 0 || bytes % base::kDeviceGranularityBytes != 0) return false;
    if (bytes > base::kMaxMemoryBytes - sum) return false;
    sum += bytes;
  }
  return sum != 0 && lent.chunk.size() == lent.bytes.size();
}

}  // namespace

bool MemoryIsShared() { return memory_is_shared.load(std::memory_order_acquire); }

CUresult ShareChunks(ClientSession& session, const std::vector<uint64_t>& chunks,
                     SharedToken* token) {
  LONGWIRE_TRY(BeginSharing());
  calls::lwShare share;
  share.chunk = chunks;
  auto answer = session.CallAndWait({}, share, share.EncodedBytes());
  LONGWIRE_TRY(answer.code);
  if (answer.reply.token.size() != token->size()) return CUDA_ERROR_UNKNOWN;
  *token = {answer.reply.token[0], answer.reply.token[1]};
  return CUDA_SUCCESS;
}

namespace {

CUresult BorrowFrom(ClientSession& session, const SharedToken& token, BorrowedChunks* borrowed) {
  calls::lwBorrow borrow;
  borrow.token.assign(token.begin(), token.end());
  auto answer = session.CallAndWait({}, borrow);
  LONGWIRE_TRY(answer.code);
  if (!AreChunks(answer.reply)) return session.Distrust("lent memory of an impossible size");
  borrowed->chunks.assign(answer.reply.chunk.begin(), answer.reply.chunk.end());
  for (uint64_t bytes : answer.reply.bytes) borrowed->bytes += bytes;
  borrowed->device = DeviceByServerOrdinal(session, answer.reply.device);
  if (borrowed->device >= 0) return CUDA_SUCCESS;
  calls::lwReturnChunks give_back;  // CUDA_VISIBLE_DEVICES hides the device
  give_back.chunk = borrowed->chunks;
  session.Submit({}, give_back, give_back.EncodedBytes());
  return CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

// A token is known to the server whose memory it stands for, and to no other.
CUresult BorrowChunks(const SharedToken& token, BorrowedChunks* borrowed) {
  LONGWIRE_TRY(BeginSharing());
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  for (ClientSession* session : Sessions()) {
    result = BorrowFrom(*session, token, borrowed);
    if (result != CUDA_ERROR_INVALID_VALUE) break;
  }
  return result;
}

uint64_t OwnNumber() {
  static const uint64_t number = [] {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) random = getpid();
    return random;
  }();
  return number;
}

void Pack(const SharedPiece& piece, char (&bytes)[64]) {
  PackedPiece packed;
  packed.piece = piece;
  std::memcpy(bytes, &packed, sizeof packed);
}

bool Unpack(const char (&bytes)[64], SharedPiece::Kind kind, SharedPiece* piece) {
  PackedPiece packed;
  std::memcpy(&packed, bytes, sizeof packed);
  *piece = packed.piece;
  return packed.mark == kPieceMark && piece->kind == kind && piece->bytes != 0;
}

CUresult ShareAllocation(uint64_t address, SharedPiece* piece) {
  Allocation allocation;
  std::vector<uint64_t> chunks;
  uint64_t start = 0;
  DeviceMemory* memory = MemoryOf(DeviceOfAddress(address));
  if (!FindAllocation(address, &allocation) || !memory->ChunksUnder(allocation, &chunks, &start)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  memory->MarkShared(allocation.address);
  CUresult result = ShareChunks(memory->session(), chunks, &piece->token);
  piece->offset = allocation.address - start;
  piece->bytes = allocation.bytes;
  piece->process = OwnNumber();
  return result;
}

CUresult TokenToDescriptor(TokenKind kind, const SharedToken& token, int* descriptor) {
  TokenFile file;
  file.kind = static_cast<uint64_t>(kind);
  file.token = token;
  wire::Descriptor made = wire::MemoryFile("longwire-token", MFD_ALLOW_SEALING);
  if (!made.valid() || write(made.get(), &file, sizeof file) != sizeof file ||
      fcntl(made.get(), F_ADD_SEALS, kSeals) != 0) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *descriptor = made.Release();
  return CUDA_SUCCESS;
}

bool TokenFromDescriptor(TokenKind kind, int descriptor, SharedToken* token) {
  TokenFile file;
  int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return false;
  if (pread(descriptor, &file, sizeof file, 0) != sizeof file) return false;
  *token = file.token;
  return file.mark == kTokenMark && file.kind == static_cast<uint64_t>(kind);
}

}  // namespace longwire::shim
