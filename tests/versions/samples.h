// One value of each message of a handshake, and of some that follow it, with fixed contents. What a
// version makes of them is recorded in fixtures/, and later versions still have to read it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "link/transport/frame.h"
#include "server/protocol/images.h"
#include "server/protocol/keeper.h"
#include "server/protocol/warden.h"
#include "tests/wire/values.h"
#include "wire/open.h"
#include "wire/record.h"
#include "wire/view.h"

namespace longwire::versions {

using Bytes = std::vector<std::byte>;

inline Bytes BytesOf(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

template <class M>
Bytes Encoded(const M& message) {
  wire::Writer writer;
  message.Encode(writer);
  return BytesOf(writer.span());
}

inline wire::OpenRequest SampleRequest() {
  wire::OpenRequest request;
  request.pid = 4711;
  request.host = "laptop";
  request.program = "/home/alice/train";
  request.call_count = 700;
  request.environment = {"CUDA_VISIBLE_DEVICES=0"};
  request.windows = {{uint64_t{1} << 45, uint64_t{1} << 41},
                     {uint64_t{5} << 44, uint64_t{1} << 40}};
  request.lanes = 0;
  return request;
}

inline wire::OpenReply SampleReply() {
  wire::OpenReply reply;
  reply.session = 1001;
  reply.driver_version = 13000;
  reply.stream_priority_greatest = -5;
  reply.allocation_granularity = 2 << 20;
  reply.upload_window = 32 << 20;
  reply.stream_share = 4 << 20;
  wire::DeviceDescription& device = reply.devices.emplace_back();
  device.name = "A Device";
  device.uuid[0] = 7;
  device.total_memory = uint64_t{1} << 34;
  device.attributes = {{1, 0, 1024}, {2, 1, 0}};
  device.window = {uint64_t{1} << 45, uint64_t{1} << 37};
  device.leased = {{3, 64 << 20}};
  reply.processes = {{"longwired", "gpu1", 42}};
  reply.missing_calls = {"cuNothing"};
  return reply;
}

inline wire::ViewRequest SampleViewRequest() {
  wire::ViewRequest request;
  request.pid = 4711;
  request.host = "laptop";
  request.devices = "2";
  return request;
}

inline wire::ViewReply SampleViewReply() {
  wire::ViewReply reply;
  reply.driver_release = "580.95.05";
  wire::ViewedDevice& device = reply.devices.emplace_back();
  device.name = "A Device";
  device.memory_total = 1 << 30;
  device.memory_free = 1 << 29;
  device.processes = {{4711, 1 << 20, "/home/alice/train"}};
  return reply;
}

// A call in the log, with arguments from a seed.
template <class Call>
Bytes Record() {
  const auto number = static_cast<uint16_t>(Call::kId);
  calls::Filler filler(number);
  Call call;
  VisitFields(call, filler);
  Bytes arguments = calls::Encoded(call);
  wire::RecordHeader header{};
  header.bytes = static_cast<uint32_t>(sizeof(header) + arguments.size());
  header.call = number;
  header.thread = 1;
  header.context = 1;
  header.stream = 3;
  Bytes record = BytesOf(std::as_bytes(std::span(&header, 1)));
  record.insert(record.end(), arguments.begin(), arguments.end());
  return record;
}

inline Bytes Text(const std::string& text) { return BytesOf(std::as_bytes(std::span(text))); }

inline transport::Attach SampleAttach() {
  transport::Attach attach;
  attach.session = 1001;
  attach.kept_bytes = attach.room_bytes = 8 << 20;
  attach.understands_terms = 1;
  return attach;
}

inline Bytes Limits() { return message::Pack(keeper::KeeperLimits{1 << 30, 1 << 28, 1000, 0, 0}); }

template <class M>
Bytes RequestOf(M request, wire::VersionRange versions) {
  request.versions = versions;
  return Encoded(request);
}

template <class M>
Bytes ReplyOf(M reply, wire::VersionRange versions) {
  reply.versions = versions;
  reply.protocol = versions.newest;
  return Encoded(reply);
}

// Every sample by its name, as a side writes it that speaks these versions.
inline std::map<std::string, Bytes> AllSamples(wire::VersionRange versions) {
  std::map<std::string, Bytes> all = {
      {"open-request", RequestOf(SampleRequest(), versions)},
      {"open-reply", ReplyOf(SampleReply(), versions)},
      {"view-request", RequestOf(SampleViewRequest(), versions)},
      {"view-reply", ReplyOf(SampleViewReply(), versions)},
      {"attach", Text(transport::EncodeAttach(SampleAttach()))},
      {"start-worker",
       message::Pack(warden::StartWorker{7, 1001, "", {0}, {"CUDA_A=1"}, true, "a", {}})},
      {"worker-started",
       message::Pack(warden::WorkerStarted{7, 0, "", 1001, 4711, true, {{0, 42}}})},
      {"worker-died", message::Pack(warden::WorkerDied{1001, 4711, -1, 11, "by signal 11"})},
      {"list-workers", message::Pack(warden::ListWorkers{1})},
      {"list-end", message::Pack(warden::ListEnd{1, 0})},
      {"get-stats", message::Pack(warden::GetStats{2})},
      {"set-quota", message::Pack(warden::SetQuota{"a", 1 << 30, 0, false})},
      {"keeper-limits", Limits()},
      {"attach-worker", message::Pack(keeper::Attach{5, {}})},
      {"assign-worker", message::Pack(keeper::Assign{5, 1, {}})},
      {"lease", message::Pack(keeper::Lease{7, {2 << 20, 64 << 20}, false})},
      {"grant", message::Pack(keeper::Grant{7, false, {{3, 2 << 20}}})},
      {"refuse", message::Pack(keeper::Refuse{7, 2, "no memory", 1 << 20})},
      {"return", message::Pack(keeper::Return{{3}})},
      {"get-info", message::Pack(keeper::GetInfo{8})},
      {"info", message::Pack(keeper::Info{8, 1 << 29, 1 << 30, 2 << 20})},
      {"borrow", message::Pack(keeper::Borrow{9, {1, 2}})},
      {"find-image", message::Pack(images::Find{1, "abcd", 100, true})},
  };
  keeper::KeeperState state;
  state.driver = "fake";
  state.device_name = "A Device";
  state.device_count = 1;
  state.total = 1 << 30;
  state.lendable = 1 << 29;
  all["keeper-state"] = message::Pack(state);
  all["call-context-create"] = Record<calls::lwContextCreate>();
  all["call-lease"] = Record<calls::lwLease>();
  all["call-map"] = Record<calls::lwMap>();
  all["call-copy-to-device"] = Record<calls::lwCopyToDevice>();
  all["call-module-load"] = Record<calls::lwModuleLoad>();
  all["call-launch"] = Record<calls::lwLaunch>();
  return all;
}

}  // namespace longwire::versions
