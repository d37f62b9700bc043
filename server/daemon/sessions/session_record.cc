#include "server/daemon/sessions/session_record.h"

#include "server/protocol/message.h"

namespace longwire::daemon {

std::string Encode(const SessionRecord& record) {
  std::vector<std::byte> bytes = message::Pack(record);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool Decode(const std::string& bytes, SessionRecord* record) {
  auto packet = std::as_bytes(std::span(bytes));
  return message::Unpack(packet, record) == wire::WireResult::kOk && record->lanes != 0 &&
         record->lanes <= 1 + wire::kMaxLanes;
}

bool Distribute(const SessionRecord& record, std::vector<wire::Descriptor> descriptors,
                KeptDescriptors* kept) {
  auto next = descriptors.begin();
  bool all = true;
  auto take = [&](wire::Descriptor* to) {
    all &= next != descriptors.end();
    if (all) *to = std::move(*next++);
  };
  take(record.local ? &kept->client : &kept->notes);
  if (record.scheduled) take(&kept->gates);
  if (record.scheduled) take(&kept->bell);
  if (record.limited) take(&kept->host_memory);
  if (record.shares_memory) take(&kept->segment);
  kept->rings.resize(2 * size_t{record.lanes - 1});
  for (wire::Descriptor& ring : kept->rings) take(&ring);
  return all && next == descriptors.end();
}

}  // namespace longwire::daemon
