#include "web/answers.h"

#include <cmath>
#include <cstdio>
#include <set>

#include "cli/text.h"
#include "cli/top/picture.h"
#include "cli/top/pool_lines.h"
#include "cli/top/sections.h"

namespace longwire::web {
namespace {

using cli::JsonString;

constexpr size_t kEvents = 200;   // in one answer
constexpr size_t kWaiters = 100;  // of each device
constexpr size_t kSessions = 11;  // that have a colour of their own in the memory map

std::string Number(double value, const char* format = "%.6f") {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string Number(const std::optional<double>& value) { return value ? Number(*value) : "null"; }

template <class Items, class Text>
std::string List(const Items& items, Text text) {
  std::string list;
  for (const auto& item : items) {
    if (!list.empty()) list += ",";
    list += text(item);
  }
  return "[" + list + "]";
}

const char* Truth(bool value) { return value ? "true" : "false"; }

// The sessions that wait on a device, and those that work there meanwhile.
struct Queue {
  std::vector<const transport::Session*> waiting, working;
};

std::string Json(const std::vector<const transport::Session*>& sessions) {
  const size_t count = std::min(sessions.size(), kWaiters);
  return List(std::vector(sessions.begin(), sessions.begin() + static_cast<ptrdiff_t>(count)),
              [](const transport::Session* one) {
                return "{\"session\":" + std::to_string(one->id()) +
                       ",\"tenant\":" + JsonString(one->tenant()) +
                       ",\"program\":" + JsonString(one->program()) + "}";
              });
}

std::string WaitsJson(const transport::InspectReply& reply) {
  std::map<int32_t, Queue> queues;
  for (const transport::Session& session : reply.sessions()) {
    for (const transport::Seat& seat : session.seats()) {
      if (!seat.busy()) continue;
      Queue& queue = queues[seat.device()];
      (seat.closed() ? queue.waiting : queue.working).push_back(&session);
    }
  }
  std::erase_if(queues, [](const auto& one) { return one.second.waiting.empty(); });
  return List(queues, [](const auto& one) {
    const auto& [device, queue] = one;
    return "{\"device\":" + std::to_string(device) + ",\"waiting\":" + Json(queue.waiting) +
           ",\"waiting_count\":" + std::to_string(queue.waiting.size()) +
           ",\"working\":" + Json(queue.working) +
           ",\"working_count\":" + std::to_string(queue.working.size()) + "}";
  });
}

std::string Json(const Percentiles& one) {
  return "{\"count\":" + std::to_string(one.count) + ",\"p50\":" + Number(one.p50) +
         ",\"p95\":" + Number(one.p95) + ",\"p99\":" + Number(one.p99) +
         ",\"beyond\":" + Truth(one.beyond) + "}";
}

std::string Json(const LatencyRow& row) {
  return "{\"name\":" + JsonString(row.name) + ",\"minute\":" + Json(row.minute) +
         ",\"hour\":" + Json(row.hour) + ",\"all\":" + Json(row.all) + "}";
}

std::string Json(const Event& event) {
  return "{\"number\":" + std::to_string(event.number) +
         ",\"seconds\":" + Number(event.seconds, "%.3f") + ",\"kind\":" + JsonString(event.kind) +
         ",\"text\":" + JsonString(event.text) + "}";
}

std::string Json(const History::Series& series) {
  return "{\"session\":" + std::to_string(series.session.id) +
         ",\"program\":" + JsonString(series.session.program) +
         ",\"tenant\":" + JsonString(series.session.tenant) +
         ",\"identity\":" + JsonString(series.session.identity) +
         ",\"most\":" + std::to_string(series.most) +
         ",\"memory\":" + List(series.memory, [](uint64_t one) { return std::to_string(one); }) +
         ",\"gpu\":" + List(series.gpu, [](float one) { return Number(one, "%.2f"); }) +
         ",\"held\":" + List(series.held, [](uint8_t one) { return std::to_string(one); }) + "}";
}

}  // namespace

std::string NowJson(Sampler& sampler, const Viewer& viewer, uint64_t events_after) {
  sampler.WantPool();
  const Sampler::State state = sampler.Get();
  auto may_see = [&](const std::string& tenant) { return viewer.MaySee(tenant); };
  std::string picture = "null", waits = "[]", pool = "null";
  if (state.now != nullptr) {
    const transport::InspectReply now = Seen(*state.now, viewer);
    std::optional<transport::InspectReply> before;
    if (state.before != nullptr) before = Seen(*state.before, viewer);
    picture = PictureJson(cli::top::MakePicture("", before ? &*before : nullptr, now));
    waits = WaitsJson(now);
    if (now.has_pool()) pool = cli::top::PoolJson(now.pool());
  }
  int64_t begin = 0, end = 0;
  sampler.WithHistory([&](const History& history) {
    begin = history.begin();
    end = history.end();
  });
  auto json = [](const auto& one) { return Json(one); };
  return "{\"run\":\"" + std::to_string(sampler.run()) +
         "\",\"version\":" + JsonString(LONGWIRE_VERSION) +
         ",\"viewer\":{\"identity\":" + JsonString(viewer.identity) +
         ",\"tenant\":" + JsonString(viewer.tenant) + ",\"admin\":" + Truth(viewer.admin) +
         "},\"answered\":" + Number(state.answered, "%.3f") + ",\"problem\":" +
         (state.problem.empty() ? "null" : JsonString(cli::Printable(state.problem))) +
         ",\"picture\":" + picture + ",\"waits\":" + waits + ",\"pool\":" + pool +
         ",\"latencies\":" + (viewer.admin ? List(sampler.Latencies(), json) : "null") +
         ",\"events\":" + List(sampler.EventsAfter(events_after, kEvents, may_see), json) +
         ",\"history\":{\"begin\":" + std::to_string(begin) + ",\"end\":" + std::to_string(end) +
         "}}";
}

std::string MemoryJson(Sampler& sampler, const Viewer& viewer, const MemoryQuestion& question) {
  History::Columns columns;
  const int64_t seconds = question.end - question.begin;
  const int64_t step = (seconds + question.columns - 1) / question.columns;
  // Columns begin at the same seconds each time: a picture that moves does not flicker.
  const int64_t begin = question.begin - question.begin % step;
  sampler.WithHistory([&](const History& history) {
    columns = history.Read(question.device, begin, question.end, step, kSessions,
                           [&](const std::string& tenant) { return viewer.MaySee(tenant); });
  });
  auto whole = [](uint64_t one) { return std::to_string(one); };
  auto json = [](const auto& one) { return Json(one); };
  return "{\"device\":" + std::to_string(question.device) +
         ",\"begin\":" + std::to_string(columns.begin) +
         ",\"step\":" + std::to_string(columns.step) +
         ",\"total\":" + std::to_string(columns.total) +
         ",\"known\":" + List(columns.known, [](bool one) { return one ? "1" : "0"; }) +
         ",\"leased\":" + List(columns.leased, whole) + ",\"idle\":" + List(columns.idle, whole) +
         ",\"busy\":" + List(columns.busy, [](float one) { return Number(one, "%.2f"); }) +
         ",\"sessions\":" + List(columns.sessions, json) +
         ",\"left_out\":" + std::to_string(columns.left_out) + "}";
}

}  // namespace longwire::web
