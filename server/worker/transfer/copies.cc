#include "server/worker/transfer/copies.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/texel_bytes.h"
#include "base/try.h"

namespace longwire::worker {
namespace {

// A box of the place: from (x, y, z) of its own coordinates, width × rows × slices.
struct Box {
  uint64_t x = 0, y = 0, z = 0;
  uint64_t width = 0, rows = 1, slices = 1;
};

uint64_t AddressOf(const CopyPlace& place, const Box& box) {
  uint64_t row = (place.z + box.z) * place.height + place.y + box.y;
  return place.address + row * place.pitch + place.x_bytes + box.x;
}

// One side of CUDA_MEMCPY3D.
void SetPlace(const CopyPlace& place, const Box& box, bool destination, CUDA_MEMCPY3D* copy) {
  CUmemorytype type = place.array != nullptr  ? CU_MEMORYTYPE_ARRAY
                      : place.host != nullptr ? CU_MEMORYTYPE_HOST
                                              : CU_MEMORYTYPE_DEVICE;
  size_t pitch = place.pitch != 0 ? place.pitch : place.x_bytes + place.width_bytes;
  size_t height = place.height != 0 ? place.height : place.y + place.rows;
  if (destination) {
    copy->dstMemoryType = type;
    copy->dstArray = place.array;
    copy->dstDevice = place.address;
    copy->dstHost = place.host;
    copy->dstPitch = pitch;
    copy->dstHeight = height;
    copy->dstXInBytes = place.x_bytes + box.x;
    copy->dstY = place.y + box.y;
    copy->dstZ = place.z + box.z;
  } else {
    copy->srcMemoryType = type;
    copy->srcArray = place.array;
    copy->srcDevice = place.address;
    copy->srcHost = place.host;
    copy->srcPitch = pitch;
    copy->srcHeight = height;
    copy->srcXInBytes = place.x_bytes + box.x;
    copy->srcY = place.y + box.y;
    copy->srcZ = place.z + box.z;
  }
}

void SetHost(std::byte* host, const Box& box, bool destination, CUDA_MEMCPY3D* copy) {
  if (destination) {
    copy->dstMemoryType = CU_MEMORYTYPE_HOST;
    copy->dstHost = host;
    copy->dstPitch = box.width;
    copy->dstHeight = box.rows;
  } else {
    copy->srcMemoryType = CU_MEMORYTYPE_HOST;
    copy->srcHost = host;
    copy->srcPitch = box.width;
    copy->srcHeight = box.rows;
  }
}

void SetExtent(const Box& box, CUDA_MEMCPY3D* copy) {
  copy->WidthInBytes = box.width;
  copy->Height = box.rows;
  copy->Depth = box.slices;
}

// The peer form is the plain one with contexts in two gaps.
CUresult CopyPeers(const DriverTable& driver, CUstream stream, const CUDA_MEMCPY3D& copy,
                   CUcontext to, CUcontext from) {
  CUDA_MEMCPY3D_PEER peers{};
  static_assert(offsetof(CUDA_MEMCPY3D, dstHeight) == offsetof(CUDA_MEMCPY3D_PEER, dstHeight) &&
                offsetof(CUDA_MEMCPY3D, Depth) == offsetof(CUDA_MEMCPY3D_PEER, Depth));
  std::memcpy(&peers, &copy, sizeof(copy));
  peers.dstContext = to;
  peers.srcContext = from;
  return driver.cuMemcpy3DPeerAsync(&peers, stream);
}

CUresult CopyRows(const DriverTable& driver, CUstream stream, const CUDA_MEMCPY3D& copy) {
  if (copy.Depth != 1 || copy.srcZ != 0 || copy.dstZ != 0) {
    return driver.cuMemcpy3DAsync_v2(&copy, stream);
  }
  CUDA_MEMCPY2D flat{};
  flat.srcXInBytes = copy.srcXInBytes;
  flat.srcY = copy.srcY;
  flat.srcMemoryType = copy.srcMemoryType;
  flat.srcHost = copy.srcHost;
  flat.srcDevice = copy.srcDevice;
  flat.srcArray = copy.srcArray;
  flat.srcPitch = copy.srcPitch;
  flat.dstXInBytes = copy.dstXInBytes;
  flat.dstY = copy.dstY;
  flat.dstMemoryType = copy.dstMemoryType;
  flat.dstHost = copy.dstHost;
  flat.dstDevice = copy.dstDevice;
  flat.dstArray = copy.dstArray;
  flat.dstPitch = copy.dstPitch;
  flat.WidthInBytes = copy.WidthInBytes;
  flat.Height = copy.Height;
  return driver.cuMemcpy2DAsync_v2(&flat, stream);
}

// The bytes of a row, of an array that has rows; 0 for others.
uint64_t RowBytes(const DriverTable& driver, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  if (array == nullptr) return 0;
  if (driver.cuArray3DGetDescriptor_v2(&shape, array) != CUDA_SUCCESS || shape.Height == 0)
    return 0;
  // Packed formats have none: they are not copied by bytes.
  return shape.Width * shape.NumChannels * base::ChannelBytes(shape.Format);
}

// Brings a place in a row of `row` bytes back into its row; returns the bytes up to the row's end.
uint64_t Wrap(uint64_t row, uint64_t width, size_t* x, size_t* y) {
  if (row == 0) return width;
  *y += *x / row;
  *x %= row;
  return row - *x;
}

// The oldest copies name a place in an array by one offset and go on over the ends of its rows.
CUresult Copy3D(const DriverTable& driver, CUstream stream, const CUDA_MEMCPY3D& copy) {
  bool one_row = copy.Height == 1 && copy.Depth == 1;
  uint64_t to_row = one_row ? RowBytes(driver, copy.dstArray) : 0;
  uint64_t from_row = one_row ? RowBytes(driver, copy.srcArray) : 0;
  if (to_row == 0 && from_row == 0) return CopyRows(driver, stream, copy);
  CUDA_MEMCPY3D piece = copy;
  uint64_t left = copy.WidthInBytes;
  while (left > 0) {
    uint64_t fits = std::min(Wrap(to_row, left, &piece.dstXInBytes, &piece.dstY),
                             Wrap(from_row, left, &piece.srcXInBytes, &piece.srcY));
    piece.WidthInBytes = std::min(left, fits);
    LONGWIRE_TRY(CopyRows(driver, stream, piece));
    left -= piece.WidthInBytes;
    piece.dstXInBytes += piece.WidthInBytes;
    piece.srcXInBytes += piece.WidthInBytes;
  }
  return CUDA_SUCCESS;
}

CUresult CopyBox(const DriverTable& driver, CopyStream stream, const CopyPlace& place,
                 const Box& box, std::byte* host, CopyDirection direction) {
  bool to_device = direction == CopyDirection::kToDevice;
  bool flat = place.array == nullptr && box.rows == 1 && box.slices == 1;
  if (flat && place.peer == nullptr) {
    uint64_t address = AddressOf(place, box);
    return to_device ? driver.cuMemcpyHtoDAsync_v2(address, host, box.width, stream.handle)
                     : driver.cuMemcpyDtoHAsync_v2(host, address, box.width, stream.handle);
  }
  CUDA_MEMCPY3D copy{};
  SetPlace(place, box, to_device, &copy);
  SetHost(host, box, !to_device, &copy);
  SetExtent(box, &copy);
  if (place.peer == nullptr) return Copy3D(driver, stream.handle, copy);
  return CopyPeers(driver, stream.handle, copy, to_device ? place.peer : stream.context,
                   to_device ? stream.context : place.peer);
}

bool Multiply(uint64_t a, uint64_t b, uint64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

}  // namespace

bool MakePlace(const calls::Place& place, CUarray array, uint64_t bytes, CopyPlace* made) {
  *made = {place.address, array,        nullptr,           place.x_bytes, place.y,     place.z,
           place.pitch,   place.height, place.width_bytes, place.rows,    place.slices};
  uint64_t sum = 0;
  // 2^48 is more than any address space: sums of such extents cannot overflow.
  constexpr uint64_t kMaxExtent = uint64_t{1} << 48;
  for (uint64_t extent : {place.x_bytes, place.y, place.z, place.pitch, place.height,
                          place.width_bytes, place.rows, place.slices, bytes}) {
    if (extent > kMaxExtent) return false;
  }
  if (!Multiply(place.width_bytes, place.rows, &sum) || !Multiply(sum, place.slices, &sum) ||
      sum != bytes) {
    return false;
  }
  uint64_t rows = 0;
  bool fits = Multiply(place.z + place.slices, std::max<uint64_t>(place.height, 1), &rows) &&
              Multiply(rows + place.y + place.rows, std::max<uint64_t>(place.pitch, 1), &sum);
  return fits && sum <= kMaxExtent * 4;
}

CUresult CopyPacked(const DriverTable& driver, CopyStream stream, const CopyPlace& place,
                    uint64_t offset, uint64_t bytes, std::byte* host, CopyDirection direction) {
  if (place.array == nullptr && place.rows == 1 && place.slices == 1) {
    return CopyBox(driver, stream, place, {offset, 0, 0, bytes, 1, 1}, host, direction);
  }
  while (bytes > 0) {
    uint64_t row = offset / place.width_bytes;
    Box box;
    box.x = offset % place.width_bytes;
    box.y = row % place.rows;
    box.z = row / place.rows;
    box.width = std::min(bytes, place.width_bytes - box.x);
    uint64_t whole_rows = bytes / place.width_bytes;
    if (box.x == 0 && whole_rows >= 1) {
      box.rows = std::min(whole_rows, place.rows - box.y);
      uint64_t whole_slices = box.y == 0 ? whole_rows / place.rows : 0;
      if (whole_slices > 1) box.slices = whole_slices;
    }
    LONGWIRE_TRY(CopyBox(driver, stream, place, box, host, direction));
    uint64_t moved = box.width * box.rows * box.slices;
    offset += moved;
    bytes -= moved;
    host += moved;
  }
  return CUDA_SUCCESS;
}

CUresult CopyBetween(const DriverTable& driver, CopyStream stream, const CopyPlace& to,
                     const CopyPlace& from) {
  Box box{0, 0, 0, to.width_bytes, to.rows, to.slices};
  if (from.width_bytes != to.width_bytes || from.rows != to.rows || from.slices != to.slices) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool flat = to.array == nullptr && from.array == nullptr && box.rows == 1 && box.slices == 1;
  bool peers = to.peer != nullptr || from.peer != nullptr;
  CUcontext to_context = to.peer != nullptr ? to.peer : stream.context;
  CUcontext from_context = from.peer != nullptr ? from.peer : stream.context;
  if (flat && to.host != nullptr && !peers) {
    return driver.cuMemcpyDtoHAsync_v2(to.host, AddressOf(from, box), box.width, stream.handle);
  }
  if (flat && from.host != nullptr && !peers) {
    return driver.cuMemcpyHtoDAsync_v2(AddressOf(to, box), from.host, box.width, stream.handle);
  }
  bool with_host = to.host != nullptr || from.host != nullptr;
  if (flat && peers && !with_host) {
    return driver.cuMemcpyPeerAsync(AddressOf(to, box), to_context, AddressOf(from, box),
                                    from_context, box.width, stream.handle);
  }
  if (flat && !with_host) {
    return driver.cuMemcpyDtoDAsync_v2(AddressOf(to, box), AddressOf(from, box), box.width,
                                       stream.handle);
  }
  CUDA_MEMCPY3D copy{};
  SetPlace(to, box, true, &copy);
  SetPlace(from, box, false, &copy);
  SetExtent(box, &copy);
  if (!peers) return Copy3D(driver, stream.handle, copy);
  return CopyPeers(driver, stream.handle, copy, to_context, from_context);
}

CUDA_MEMCPY3D DescribeCopy(const CopyPlace& to, std::byte* to_host, const CopyPlace& from,
                           std::byte* from_host) {
  Box box{0, 0, 0, to.width_bytes, to.rows, to.slices};
  CUDA_MEMCPY3D copy{};
  if (to_host == nullptr) {
    SetPlace(to, box, true, &copy);
  } else {
    SetHost(to_host, box, true, &copy);
  }
  if (from_host == nullptr) {
    SetPlace(from, box, false, &copy);
  } else {
    SetHost(from_host, box, false, &copy);
  }
  SetExtent(box, &copy);
  return copy;
}

}  // namespace longwire::worker
