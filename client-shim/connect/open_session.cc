#include "client-shim/connect/open_session.h"

#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/environment.h"
#include "base/reason.h"
#include "client-shim/connect/check_reply.h"
#include "client-shim/connect/connection.h"
#include "client-shim/connect/link_place.h"
#include "client-shim/connect/takeover.h"
#include "client-shim/copy/bridges.h"
#include "longwire/call_ids.h"
#include "wire/driver_variables.h"
#include "wire/lost_descriptors.h"
#include "wire/places.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kOpenTime{5};  // to get through to the link or the local server
// Links report a server that is silent much sooner, and wait for one that starts a worker.
constexpr std::chrono::seconds kLinkTime{70};
constexpr std::chrono::seconds kLocalTime{15};
constexpr int kAttempts = 3;

// The longest record has to fit in; larger ones than these no link or worker makes.
constexpr size_t kLeastRing = 2 * wire::kMaxRecordBytes;
constexpr size_t kLargestRing = 8 * wire::kRingBytes;

uint32_t HighestCall() {
  uint32_t highest = 0;
  for (uint16_t number = 1; number < wire::kCallNumbers; ++number) {
    if (strcmp(CallName(static_cast<CallId>(number)), "?") != 0) highest = number;
  }
  return highest;
}

std::string ProgramName() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
}

// Whether a pool may place it on several hosts.
bool MayHavePlaces(const Options& options) {
  return !options.same_host && !options.across && options.place.empty() && !IsLocal(options);
}

wire::OpenRequest MakeRequest(const Options& options, const std::vector<wire::Window>& windows) {
  wire::OpenRequest request;
  request.pid = static_cast<uint32_t>(getpid());
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  request.host = host;
  request.program = ProgramName();
  request.call_count = HighestCall() + 1;
  for (const char* name : wire::kDriverVariables) {
    const char* value = base::Environment(name);
    if (value != nullptr) request.environment.push_back(std::string(name) + "=" + value);
  }
  // For the daemon only: the worker has its devices before it reads this.
  const std::pair<const char*, const std::string&> told[] = {
      {"LONGWIRE_DEVICES=", options.devices},       {"LONGWIRE_MEMORY=", options.memory},
      {"LONGWIRE_LABELS=", options.labels},         {"LONGWIRE_TIME_LIMIT=", options.time_limit},
      {"LONGWIRE_PROGRAM_ID=", options.program_id}, {"LONGWIRE_REQUEST=", options.request}};
  for (const auto& [name, value] : told) {
    if (!value.empty()) request.environment.push_back(name + value);
  }
  if (MayHavePlaces(options)) request.environment.emplace_back(wire::kOverHosts);
  for (const auto& [name, value] : {std::pair(wire::kPlaceVariable, options.place),
                                    std::pair(wire::kAvoidVariable, options.avoid)}) {
    if (!value.empty()) request.environment.push_back(std::string(name) + value);
  }
  if (!options.wait) {
    request.environment.emplace_back(wire::kWaitsByDefault);
  } else if (options.wait->count() != 0) {
    request.environment.emplace_back("LONGWIRE_WAIT=1");
  }
  if (options.server_number != 0) {
    request.environment.push_back(wire::kHandleSpace + std::to_string(options.server_number));
  }
  request.windows = windows;
  request.lanes = options.lanes;
  if (const uint32_t each = BridgeLanesFor(options.server_count, options.lanes); each != 0) {
    const int others = options.server_count - 1;
    request.environment.push_back(wire::kBridges + std::to_string(others) + "," +
                                  std::to_string(each) + (HasWholeCopies() ? ",1" : ",0"));
    request.lanes += each * static_cast<uint32_t>(others);
  }
  request.lane_copy_bytes = options.lane_copy_bytes;
  request.lane_chunk_bytes = options.lane_chunk_bytes;
  request.shares_memory = IsLocal(options) && !wire::IsSwitchedOff("shared-pinned");
  return request;
}

bool IsRing(const wire::RingMemory* ring) {
  return ring != nullptr && ring->bytes() >= kLeastRing && ring->bytes() <= kLargestRing;
}

bool TakeReply(const Options& options, const wire::OpenRequest& request, wire::Message& message,
               SessionParts* parts, std::string* sentence) {
  wire::Reader reader(message.bytes);
  if (MayHavePlaces(options) && wire::IsPlaces(message.bytes)) {
    *sentence = "the places that the pool has given cannot be read; upgrade longwire-link";
    wire::PlaceList places;
    if (places.Decode(reader) != wire::WireResult::kOk) return false;
    parts->places = std::move(places.places);
    return true;
  }
  if (parts->reply.Decode(reader) != wire::WireResult::kOk) {
    *sentence = "the answer of the server cannot be read; is it a longwired of this version?";
    return false;
  }
  wire::OpenReply& reply = parts->reply;
  std::string problem = wire::ProblemOfAnswer(reply.code != 0, reply.protocol, reply.versions);
  if (!problem.empty()) {
    reply.code = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    reply.sentence = std::move(problem);
  }
  if (reply.code != 0) return true;
  problem = ProblemOfReply(reply, {request.windows, request.lanes, request.shares_memory,
                                   request.lanes - options.lanes});
  if (!problem.empty()) {
    *sentence = "the server's answer is not accepted: " + problem;
    return false;
  }
  size_t rings = 2 * (size_t{1} + parts->reply.lanes);
  size_t segments = parts->reply.segment_bytes != 0 ? 1 : 0;
  if (wire::LostDescriptors(message)) {
    *sentence = "the session's rings cannot be taken: " + base::Reason(EMFILE);
    return false;
  }
  if (message.descriptors.size() != rings + segments) {
    *sentence = "the server opened a session without its rings";
    return false;
  }
  if (segments != 0) parts->segment = std::move(message.descriptors.back());
  for (size_t i = 0; i < rings; i += 2) {
    LaneRings rings;
    rings.up = wire::RingMemory::Map(message.descriptors[i].Release());
    rings.down = wire::RingMemory::Map(message.descriptors[i + 1].Release());
    if (!IsRing(rings.up.get()) || !IsRing(rings.down.get())) {
      *sentence = "the server's rings cannot be mapped: " + base::Reason(errno) +
                  "; is there a limit on addresses (ulimit -v)?";
      return false;
    }
    parts->lanes.push_back(std::move(rings));
  }
  parts->up = parts->lanes.front().up;
  parts->down = parts->lanes.front().down;
  parts->lanes.erase(parts->lanes.begin());
  return true;
}

// A session without a link has no takeover.
wire::Descriptor Connect(const Options& options, Clock::time_point deadline,
                         std::shared_ptr<Takeover>* takeover, std::string* sentence) {
  if (IsLocal(options)) return ConnectToServer(options, deadline, sentence);
  LinkPlace place;
  if (!FindLinkPlace(options, &place, sentence)) return {};
  wire::Descriptor socket = ConnectToLink(place, deadline, sentence);
  *takeover = Takeover::Prepare(std::move(place));
  return socket;
}

// Nothing if there are not enough descriptors: then the session ends with its link.
SocketWatch::Renewal RenewalBy(std::shared_ptr<Takeover> takeover, const SessionParts& parts) {
  SocketWatch::Renewal renewal;
  renewal.descriptors.push_back(takeover->TakePage());
  std::vector<LaneRings> all = {{parts.up, parts.down}};
  all.insert(all.end(), parts.lanes.begin(), parts.lanes.end());
  for (const LaneRings& rings : all) {
    for (const auto& ring : {rings.up, rings.down}) {
      renewal.descriptors.push_back(wire::Duplicate(ring->descriptor()));
      if (!renewal.descriptors.back().valid()) return {};
    }
  }
  takeover->Opened(parts.down);
  renewal.connect = [takeover](std::span<const int> descriptors, std::string* sentence) {
    return takeover->Connect(descriptors, sentence);
  };
  return renewal;
}

enum class Outcome { kAnswered, kClosed, kFailed };

Outcome Ask(const Options& options, const wire::OpenRequest& request, Clock::time_point deadline,
            SessionParts* parts, std::string* sentence) {
  std::shared_ptr<Takeover> takeover;
  parts->socket = Connect(options, deadline, &takeover, sentence);
  std::string to = "cannot reach " + options.server + ": ";
  if (!parts->socket.valid()) {
    *sentence = to + *sentence;
    return Outcome::kFailed;
  }
  wire::Writer writer;
  request.Encode(writer);
  std::vector<int> page;
  if (takeover != nullptr) page.push_back(takeover->page());
  // Who refuses at once may have closed it by now; the reason lies there.
  (void)wire::SendMessage(parts->socket.get(), writer.span(), page);
  const std::chrono::seconds time = takeover != nullptr ? kLinkTime : kLocalTime;
  bool closed = false;
  auto message = wire::ReceiveMessage(parts->socket.get(), time, &closed);
  if (!message) {
    *sentence = to + (closed ? "the connection was closed"
                             : "no answer within " + std::to_string(time.count()) + " seconds");
    return closed ? Outcome::kClosed : Outcome::kFailed;
  }
  if (!TakeReply(options, request, *message, parts, sentence)) return Outcome::kFailed;
  if (takeover != nullptr && parts->reply.code == 0 && parts->places.empty()) {
    parts->renewal = RenewalBy(std::move(takeover), *parts);
  }
  return Outcome::kAnswered;
}

}  // namespace

bool OpenSession(const Options& options, const std::vector<wire::Window>& windows,
                 SessionParts* parts, std::string* sentence) {
  const Clock::time_point deadline = Clock::now() + kOpenTime;
  Options asked = options;
  // A link may end while it opens the session.
  const int attempts = IsLocal(options) ? 1 : kAttempts;
  Outcome outcome = Outcome::kClosed;
  for (int i = 0; i < attempts && outcome == Outcome::kClosed && Clock::now() < deadline; ++i) {
    // A link that ended has taken along by what the pool knew this number.
    if (i != 0 && !asked.request.empty()) asked.request = options.request + std::to_string(i);
    outcome = Ask(options, MakeRequest(asked, windows), deadline, parts, sentence);
  }
  return outcome == Outcome::kAnswered;
}

}  // namespace longwire::shim
