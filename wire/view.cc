#include "wire/view.h"

namespace longwire::wire {
namespace {

constexpr uint32_t kRequestMagic = 0x5356574c;  // "LWVS"
constexpr uint32_t kReplyMagic = 0x5456574c;    // "LWVT"
constexpr size_t kMaxText = 4096;               // bytes of one name or sentence

void EncodePlaces(Writer& writer, const std::vector<uint32_t>& places) {
  writer.U32(static_cast<uint32_t>(places.size()));
  for (uint32_t place : places) writer.U32(place);
}

WireResult DecodePlaces(Reader& reader, std::vector<uint32_t>* places) {
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, sizeof(uint32_t), kMaxDevices));
  places->resize(count);
  for (uint32_t& place : *places) LW_TRY(reader.U32(&place));
  return WireResult::kOk;
}

WireResult DecodeLinks(Reader& reader, std::vector<ViewedLink>* links) {
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, 5 * sizeof(uint32_t), kMaxViewedLinks));
  links->resize(count);
  for (ViewedLink& link : *links) {
    LW_TRY(reader.U32(&link.number));
    LW_TRY(reader.U32(&link.version));
    LW_TRY(reader.U32(&link.capabilities));
    LW_TRY(reader.U32(&link.remote_type));
    LW_TRY(reader.String(&link.remote, kMaxText));
  }
  return WireResult::kOk;
}

void EncodeDevice(Writer& writer, const ViewedDevice& device) {
  writer.String(device.name);
  writer.Raw(device.uuid.data(), device.uuid.size());
  writer.U32(static_cast<uint32_t>(device.attributes.size()));
  for (const ViewedAttribute& attribute : device.attributes) {
    writer.I32(attribute.attribute);
    writer.I32(attribute.value);
  }
  writer.U64(device.memory_total);
  writer.U64(device.memory_reserved);
  writer.U64(device.memory_free);
  writer.U32(device.busy_percent);
  EncodePlaces(writer, device.peers);
  EncodePlaces(writer, device.atomic_peers);
  writer.U32(static_cast<uint32_t>(device.links.size()));
  for (const ViewedLink& link : device.links) {
    for (uint32_t field : {link.number, link.version, link.capabilities, link.remote_type}) {
      writer.U32(field);
    }
    writer.String(link.remote);
  }
  writer.U32(static_cast<uint32_t>(device.processes.size()));
  for (const ViewedProcess& process : device.processes) {
    writer.U32(process.pid);
    writer.U64(process.memory);
    writer.String(process.program);
  }
}

WireResult DecodeDevice(Reader& reader, ViewedDevice* device) {
  LW_TRY(reader.String(&device->name, kMaxText));
  LW_TRY(reader.Raw(device->uuid.data(), device->uuid.size()));
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, 2 * sizeof(int32_t), kMaxAttributes));
  device->attributes.resize(count);
  for (ViewedAttribute& attribute : device->attributes) {
    LW_TRY(reader.I32(&attribute.attribute));
    LW_TRY(reader.I32(&attribute.value));
  }
  LW_TRY(reader.U64(&device->memory_total));
  LW_TRY(reader.U64(&device->memory_reserved));
  LW_TRY(reader.U64(&device->memory_free));
  LW_TRY(reader.U32(&device->busy_percent));
  if (device->memory_reserved > device->memory_total ||
      device->memory_free > device->memory_total - device->memory_reserved ||
      device->busy_percent > 100) {
    return WireResult::kFatal;
  }
  LW_TRY(DecodePlaces(reader, &device->peers));
  LW_TRY(DecodePlaces(reader, &device->atomic_peers));
  LW_TRY(DecodeLinks(reader, &device->links));
  constexpr size_t kLeastBytes = sizeof(uint32_t) + sizeof(uint64_t) + sizeof(uint32_t);
  LW_TRY(reader.Count(&count, kLeastBytes, kMaxViewedProcesses));
  device->processes.resize(count);
  for (ViewedProcess& process : device->processes) {
    LW_TRY(reader.U32(&process.pid));
    LW_TRY(reader.U64(&process.memory));
    LW_TRY(reader.String(&process.program, kMaxText));
  }
  return WireResult::kOk;
}

}  // namespace

bool IsViewRequest(std::span<const std::byte> message) {
  Reader reader(message);
  return DecodeMagic(reader, kRequestMagic) == WireResult::kOk;
}

void ViewRequest::Encode(Writer& writer) const {
  writer.U32(kRequestMagic);
  writer.U32(versions.oldest);
  writer.U32(pid);
  writer.String(host);
  writer.String(devices);
  if (versions != kWithoutRange) EncodeRange(writer, versions);
}

WireResult ViewRequest::Decode(Reader& reader) {
  std::span<const std::byte> all = Rest(reader);
  uint32_t number = 0;
  LW_TRY(DecodeMagic(reader, kRequestMagic));
  LW_TRY(reader.U32(&number));
  versions = RangeOf(all, number);
  // Others may go on differently: the daemon refuses them by their range, with a sentence.
  if (!Common(versions, SpokenVersions())) return WireResult::kOk;
  LW_TRY(reader.U32(&pid));
  LW_TRY(reader.String(&host, kMaxText));
  LW_TRY(reader.String(&devices, kMaxText));
  SkipRest(reader);
  return WireResult::kOk;
}

void ViewReply::Encode(Writer& writer) const {
  writer.U32(kReplyMagic);
  writer.U32(protocol);
  writer.I32(code);
  writer.String(sentence);
  writer.String(driver_release);
  writer.U32(static_cast<uint32_t>(devices.size()));
  for (const ViewedDevice& device : devices) EncodeDevice(writer, device);
  if (protocol > kLastWithoutRange) EncodeRange(writer, versions);
}

WireResult ViewReply::Decode(Reader& reader) {
  std::span<const std::byte> all = Rest(reader);
  LW_TRY(DecodeMagic(reader, kReplyMagic));
  LW_TRY(reader.U32(&protocol));
  versions = RangeOf(all, protocol);
  LW_TRY(reader.I32(&code));
  LW_TRY(reader.String(&sentence, kMaxText));
  if (!SpokenVersions().Has(protocol)) return WireResult::kOk;
  if (protocol > kLastWithoutRange && !HasRange(all)) return WireResult::kFatal;
  LW_TRY(reader.String(&driver_release, kMaxText));
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, sizeof(uint64_t), kMaxDevices));
  devices.resize(count);
  for (ViewedDevice& device : devices) LW_TRY(DecodeDevice(reader, &device));
  SkipRest(reader);
  return WireResult::kOk;
}

}  // namespace longwire::wire
