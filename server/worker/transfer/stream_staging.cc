#include "server/worker/transfer/stream_staging.h"

#include "server/worker/support/down_writer.h"
#include "server/worker/support/objects.h"
#include "server/worker/transfer/host_segment.h"

namespace longwire::worker {

bool StreamStaging::Acquire(Stream& stream, size_t bytes, StagingBlock* block) {
  bool grow = false;
  if (uses_.staging.Acquire(bytes, stream.staging_blocks == 0, block, &grow)) {
    ++stream.staging_blocks;
    return true;
  }
  if (grow) uses_.grow();
  return false;
}

void StreamStaging::Release(Stream& stream, const StagingBlock& block) {
  --stream.staging_blocks;
  uses_.staging.Release(block);
  if (uses_.freed) uses_.freed();
}

void StreamStaging::ReleaseBlock(Stream* stream, const StagingBlock& block) {
  if (block.size_class == StagingBlock::kSlot) {
    uses_.down.Slot(uses_.host_segment.OffsetOf(block.data));
  } else {
    Release(*stream, block);
  }
}

}  // namespace longwire::worker
