#include "server/worker/issue/next_work.h"

#include <iterator>

#include "base/name_number.h"
#include "longwire/calls.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

constexpr int kRecordsSeen = 64;

uint64_t NumberOfKernel(std::span<const std::byte> arguments,
                        const HandleTable<Function>& functions) {
  calls::lwLaunch launch;
  wire::Reader reader(arguments);
  if (launch.Decode(reader) != wire::WireResult::kOk) return 0;
  const auto function = functions.Find(launch.function);
  return function == nullptr ? 0 : base::NumberOfName(function->name);
}

}  // namespace

keeper::NextWork NextWorkIn(std::span<const std::byte> log,
                            const HandleTable<Function>& functions) {
  keeper::NextWork next;
  for (int record = 0; record < kRecordsSeen; ++record) {
    wire::RecordHeader header;
    size_t bytes = 0;
    if (wire::PeekRecord(log, &header, &bytes) != wire::WireResult::kOk || bytes == 0) break;
    if (static_cast<CallId>(header.call) == CallId::lwLaunch) {
      const auto arguments = log.subspan(sizeof(header), bytes - sizeof(header));
      if (next.launches < std::size(next.kernels)) {
        next.kernels[next.launches] = NumberOfKernel(arguments, functions);
      }
      ++next.launches;
    }
    log = log.subspan(wire::AlignRecord(bytes));
  }
  return next;
}

}  // namespace longwire::worker
