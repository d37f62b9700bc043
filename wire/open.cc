#include "wire/open.h"

#include <algorithm>

namespace longwire::wire {
namespace {

constexpr uint32_t kRequestMagic = 0x5157574c;  // "LWWQ"
constexpr uint32_t kReplyMagic = 0x5057574c;    // "LWWP"
constexpr size_t kMaxText = 4096;               // bytes of one name, sentence or variable

void EncodeStrings(Writer& writer, const std::vector<std::string>& strings) {
  writer.U32(static_cast<uint32_t>(strings.size()));
  for (const std::string& text : strings) writer.String(text);
}

WireResult DecodeStrings(Reader& reader, std::vector<std::string>* strings, size_t limit) {
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, sizeof(uint32_t), limit));
  strings->resize(count);
  for (std::string& text : *strings) LW_TRY(reader.String(&text, kMaxText));
  return WireResult::kOk;
}

void EncodeWindow(Writer& writer, const Window& window) {
  writer.U64(window.base);
  writer.U64(window.bytes);
}

WireResult DecodeWindow(Reader& reader, Window* window) {
  LW_TRY(reader.U64(&window->base));
  LW_TRY(reader.U64(&window->bytes));
  // A range that wraps around is never a window.
  return window->base + window->bytes < window->base ? WireResult::kFatal : WireResult::kOk;
}

// As many as the client's own, if there is room for them: then a piece has on its way what an
// upload's has. The servers may have more processors than a client with few lanes.
constexpr uint32_t kLeastLanesOfBridge = 4;

}  // namespace

uint32_t BridgeLanes(uint32_t others, uint32_t own) {
  if (others == 0 || own == 0 || own + others > kMaxLanes) return 0;
  return std::min((kMaxLanes - own) / others, std::max(own, kLeastLanesOfBridge));
}

void OpenRequest::Encode(Writer& writer) const {
  writer.U32(kRequestMagic);
  writer.U32(versions.oldest);
  writer.U32(pid);
  writer.String(host);
  writer.String(program);
  writer.U32(call_count);
  EncodeStrings(writer, environment);
  writer.U32(static_cast<uint32_t>(windows.size()));
  for (const Window& window : windows) EncodeWindow(writer, window);
  writer.U32(lanes);
  writer.U64(lane_copy_bytes);
  writer.U64(lane_chunk_bytes);
  writer.U32(shares_memory ? 1 : 0);
  if (versions != kWithoutRange) EncodeRange(writer, versions);
}

WireResult OpenRequest::Decode(Reader& reader) {
  std::span<const std::byte> all = Rest(reader);
  uint32_t number = 0;
  LW_TRY(DecodeMagic(reader, kRequestMagic));
  LW_TRY(reader.U32(&number));
  versions = RangeOf(all, number);
  // Others may go on differently: the caller refuses them by their range, with a sentence.
  if (!Common(versions, SpokenVersions())) return WireResult::kOk;
  LW_TRY(reader.U32(&pid));
  LW_TRY(reader.String(&host, kMaxText));
  LW_TRY(reader.String(&program, kMaxText));
  LW_TRY(reader.U32(&call_count));
  LW_TRY(DecodeStrings(reader, &environment, kMaxEnvironment));
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, 2 * sizeof(uint64_t), kMaxWindows));
  windows.resize(count);
  for (Window& window : windows) LW_TRY(DecodeWindow(reader, &window));
  LW_TRY(reader.U32(&lanes));
  LW_TRY(reader.U64(&lane_copy_bytes));
  LW_TRY(reader.U64(&lane_chunk_bytes));
  uint32_t shares = 0;
  LW_TRY(reader.U32(&shares));
  shares_memory = shares != 0;
  SkipRest(reader);
  return shares <= 1 ? WireResult::kOk : WireResult::kFatal;
}

void DeviceDescription::Encode(Writer& writer) const {
  writer.String(name);
  writer.Raw(uuid.data(), uuid.size());
  writer.U64(total_memory);
  writer.U32(static_cast<uint32_t>(attributes.size()));
  for (const DeviceAttribute& attribute : attributes) {
    writer.I32(attribute.attribute);
    writer.I32(attribute.code);
    writer.I32(attribute.value);
  }
  EncodeWindow(writer, window);
  writer.U32(static_cast<uint32_t>(leased.size()));
  for (const LeasedChunk& chunk : leased) {
    writer.U64(chunk.chunk);
    writer.U64(chunk.bytes);
  }
}

WireResult DeviceDescription::Decode(Reader& reader) {
  LW_TRY(reader.String(&name, kMaxText));
  LW_TRY(reader.Raw(uuid.data(), uuid.size()));
  LW_TRY(reader.U64(&total_memory));
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, 3 * sizeof(int32_t), kMaxAttributes));
  attributes.resize(count);
  for (DeviceAttribute& attribute : attributes) {
    LW_TRY(reader.I32(&attribute.attribute));
    LW_TRY(reader.I32(&attribute.code));
    LW_TRY(reader.I32(&attribute.value));
  }
  LW_TRY(DecodeWindow(reader, &window));
  LW_TRY(reader.Count(&count, 2 * sizeof(uint64_t), kMaxAttributes));
  leased.resize(count);
  for (LeasedChunk& chunk : leased) {
    LW_TRY(reader.U64(&chunk.chunk));
    LW_TRY(reader.U64(&chunk.bytes));
  }
  return WireResult::kOk;
}

void OpenReply::Encode(Writer& writer) const {
  writer.U32(kReplyMagic);
  writer.U32(protocol);
  writer.I32(code);
  writer.String(sentence);
  writer.U64(session);
  writer.I32(driver_version);
  writer.I32(stream_priority_least);
  writer.I32(stream_priority_greatest);
  writer.U64(allocation_granularity);
  writer.U64(upload_window);
  writer.U64(stream_share);
  writer.U32(lanes);
  writer.U64(segment_bytes);
  writer.U64(largest_chunk);
  writer.U32(static_cast<uint32_t>(devices.size()));
  for (const DeviceDescription& device : devices) device.Encode(writer);
  writer.U32(static_cast<uint32_t>(processes.size()));
  for (const ProcessDescription& process : processes) {
    writer.String(process.role);
    writer.String(process.host);
    writer.U32(process.pid);
  }
  EncodeStrings(writer, missing_calls);
  if (protocol <= kLastWithoutRange) return;
  writer.U64(wait);
  // Each field is written if one behind it is; clients that ask for no bridges know none.
  const bool hold_back = bridges_hold_back != 0;
  if (bridge_lanes != 0 || segment_base != 0 || hold_back) writer.U32(bridge_lanes);
  if (segment_base != 0 || hold_back) writer.U64(segment_base);
  if (hold_back) writer.U32(bridges_hold_back);
  EncodeRange(writer, versions);
}

WireResult OpenReply::Decode(Reader& reader) {
  std::span<const std::byte> all = Rest(reader);
  LW_TRY(DecodeMagic(reader, kReplyMagic));
  LW_TRY(reader.U32(&protocol));
  versions = RangeOf(all, protocol);
  LW_TRY(reader.I32(&code));
  LW_TRY(reader.String(&sentence, kMaxText));
  if (!SpokenVersions().Has(protocol)) return WireResult::kOk;
  if (protocol > kLastWithoutRange && !HasRange(all)) return WireResult::kFatal;
  LW_TRY(reader.U64(&session));
  LW_TRY(reader.I32(&driver_version));
  LW_TRY(reader.I32(&stream_priority_least));
  LW_TRY(reader.I32(&stream_priority_greatest));
  LW_TRY(reader.U64(&allocation_granularity));
  LW_TRY(reader.U64(&upload_window));
  LW_TRY(reader.U64(&stream_share));
  LW_TRY(reader.U32(&lanes));
  if (lanes > kMaxLanes) return WireResult::kFatal;
  LW_TRY(reader.U64(&segment_bytes));
  LW_TRY(reader.U64(&largest_chunk));
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, sizeof(uint64_t), kMaxDevices));
  devices.resize(count);
  for (DeviceDescription& device : devices) LW_TRY(device.Decode(reader));
  LW_TRY(reader.Count(&count, 3 * sizeof(uint32_t), kMaxDevices));
  processes.resize(count);
  for (ProcessDescription& process : processes) {
    LW_TRY(reader.String(&process.role, kMaxText));
    LW_TRY(reader.String(&process.host, kMaxText));
    LW_TRY(reader.U32(&process.pid));
  }
  LW_TRY(DecodeStrings(reader, &missing_calls, kMaxAttributes));
  const bool has_range = protocol > kLastWithoutRange;
  if (has_range && HasFieldBeforeRange(reader, sizeof(wait))) LW_TRY(reader.U64(&wait));
  if (has_range && HasFieldBeforeRange(reader, sizeof(bridge_lanes))) {
    LW_TRY(reader.U32(&bridge_lanes));
    if (bridge_lanes > lanes) return WireResult::kFatal;
  }
  if (has_range && HasFieldBeforeRange(reader, sizeof(segment_base))) {
    LW_TRY(reader.U64(&segment_base));
  }
  if (has_range && HasFieldBeforeRange(reader, sizeof(bridges_hold_back))) {
    LW_TRY(reader.U32(&bridges_hold_back));
  }
  SkipRest(reader);
  return WireResult::kOk;
}

}  // namespace longwire::wire
