#include "server/worker/process/carried_arrays.h"

#include <algorithm>

#include "base/texel_bytes.h"
#include "base/try.h"
#include "longwire/calls.h"
#include "server/worker/process/session.h"

namespace longwire::worker {
namespace {

// Sizes are halved from level to level.
constexpr unsigned kMaxLevels = 64;
// Memory that comes later, or is nobody's.
constexpr unsigned kWithoutMemory = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

CUresult RowsOf(const DriverTable& driver, CUarray array, ArrayRows* rows) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  LONGWIRE_TRY(driver.cuArray3DGetDescriptor_v2(&shape, array));
  const uint64_t texel = base::TexelBytes(static_cast<uint32_t>(shape.Format),
                                          static_cast<uint32_t>(shape.NumChannels));
  if (texel == 0 || (shape.Flags & kWithoutMemory) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  rows->row_bytes = texel * shape.Width;
  rows->rows = std::max<uint64_t>(shape.Height, 1);
  rows->slices = std::max<uint64_t>(shape.Depth, 1);
  return CUDA_SUCCESS;
}

// The number under which the program has the array; 0: the call made none.
template <class Call>
uint64_t IdIn(const Journal::Entry& entry) {
  typename Call::Reply reply;
  wire::Reader reader(entry.reply);
  return reply.Decode(reader) == wire::WireResult::kOk ? reply.pHandle : 0;
}

bool MakesArrays(CallId call) {
  return call == CallId::cuArrayCreate_v2 || call == CallId::cuArray3DCreate_v2 ||
         call == CallId::cuMipmappedArrayCreate;
}

uint64_t ArrayMadeBy(const Journal::Entry& entry) {
  if (entry.call.call == CallId::cuArrayCreate_v2) return IdIn<calls::cuArrayCreate_v2>(entry);
  if (entry.call.call == CallId::cuArray3DCreate_v2) return IdIn<calls::cuArray3DCreate_v2>(entry);
  if (entry.call.call != CallId::cuMipmappedArrayCreate) return 0;
  return IdIn<calls::cuMipmappedArrayCreate>(entry);
}

}  // namespace

CUresult ArrayOf(WorkerSession& session, const Contents& contents, CUarray* array,
                 ArrayRows* rows) {
  CUmipmappedArray levels = nullptr;
  if (session.foreign().Find(contents.array, &levels)) {
    LONGWIRE_TRY(session.driver().cuMipmappedArrayGetLevel(array, levels, contents.level));
  } else if (contents.level != 0 || !session.foreign().Find(contents.array, array)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return RowsOf(session.driver(), *array, rows);
}

std::string FindArrays(WorkerSession& session, std::vector<Contents>* arrays) {
  session.SetPrimaryContext(session.devices().front());
  for (const Journal::Entry& entry : session.journal().EntriesOf(MakesArrays)) {
    const uint64_t id = entry.result == CUDA_SUCCESS ? ArrayMadeBy(entry) : 0;
    CUarray array = nullptr;
    CUmipmappedArray levels = nullptr;
    const bool mipmapped = session.foreign().Find(id, &levels);
    if (!mipmapped && !session.foreign().Find(id, &array)) continue;  // destroyed
    for (unsigned level = 0; level < (mipmapped ? kMaxLevels : 1); ++level) {
      Contents one;
      one.array = id;
      one.level = level;
      ArrayRows rows;
      CUresult result = ArrayOf(session, one, &array, &rows);
      if (level != 0 && result == CUDA_ERROR_INVALID_VALUE) break;  // there are no more
      if (result == CUDA_ERROR_NOT_SUPPORTED)
        return "it has an array of a format that is not moved";
      if (result != CUDA_SUCCESS) {
        return "one of its arrays is not known (error " + std::to_string(result) + ")";
      }
      one.bytes = rows.bytes();
      arrays->push_back(one);
    }
  }
  return "";
}

CUresult CopyRows(const DriverTable& driver, CUarray array, const ArrayRows& rows, uint64_t first,
                  uint64_t count, std::byte* host, bool to_host) {
  while (count != 0) {
    const uint64_t row = first % rows.rows;
    const uint64_t here = std::min(count, rows.rows - row);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = to_host ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
    copy.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
    (to_host ? copy.srcArray : copy.dstArray) = array;
    (to_host ? copy.srcY : copy.dstY) = row;
    (to_host ? copy.srcZ : copy.dstZ) = first / rows.rows;
    copy.srcHost = to_host ? nullptr : host;
    copy.dstHost = to_host ? host : nullptr;
    (to_host ? copy.dstPitch : copy.srcPitch) = rows.row_bytes;
    (to_host ? copy.dstHeight : copy.srcHeight) = here;
    copy.WidthInBytes = rows.row_bytes;
    copy.Height = here;
    copy.Depth = 1;
    LONGWIRE_TRY(driver.cuMemcpy3D_v2(&copy));
    host += here * rows.row_bytes;
    first += here;
    count -= here;
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
