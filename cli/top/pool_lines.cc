#include "cli/top/pool_lines.h"

#include <algorithm>
#include <cstdio>

#include "cli/text.h"
#include "cli/top/table.h"

namespace longwire::cli::top {
namespace {

using transport::PoolDevice;
using transport::PoolFigures;
using transport::PoolHost;
using transport::PoolWaiter;

struct Sums {
  uint64_t promised = 0, total = 0;
  double busy = 0;  // the mean
};

Sums SumsOf(const PoolHost& host) {
  Sums sums;
  for (const PoolDevice& device : host.devices()) {
    sums.promised += device.promised();
    sums.total += device.total();
    sums.busy += device.busy() / host.devices_size();
  }
  return sums;
}

std::string Percent(double part) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f%%", 100 * part);
  return text;
}

std::string MemoryText(uint64_t promised, uint64_t total) {
  return BytesText(promised) + " of " + BytesText(total);
}

std::string Joined(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ",") + text;
  return list;
}

// A path's last part: the beginning of most paths is the same.
std::string FileName(const std::string& program) { return program.substr(program.rfind('/') + 1); }

std::vector<const PoolWaiter*> InOrder(const PoolFigures& pool) {
  std::vector<const PoolWaiter*> waiting;
  for (const PoolWaiter& waiter : pool.waiting()) waiting.push_back(&waiter);
  // Whom the placer has not answered yet is behind all others.
  std::ranges::stable_sort(waiting, {}, [](const PoolWaiter* one) { return one->place() - 1; });
  return waiting;
}

void AddLines(const std::vector<std::string>& lines, std::string* text) {
  *text += "\n";
  for (std::string line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    *text += line + "\n";
  }
}

}  // namespace

std::string HostState(const PoolHost& host) {
  if (!host.unknown().empty()) return host.unknown();
  const transport::PoolWithdrawal& told = host.withdrawn();
  std::string text = host.joined() ? "in service" : "not in the pool now";
  if (host.joined() && host.cordoned()) text = "takes no new sessions";
  if (!host.has_withdrawn()) return text;
  text = told.drain() ? "drained" : "cordoned";
  if (!host.joined()) text += ", not in the pool now";
  if (told.drain() && host.sessions() == 0) return text + ", empty";
  if (told.drain() && told.heard() && told.seconds() != 0) {
    text += ", ends what runs in " + std::to_string(told.left()) + " s";
  }
  return text;
}

std::string PoolHeadLine(const PoolFigures& pool) {
  uint32_t sessions = 0;
  for (const PoolHost& host : pool.hosts()) sessions += host.sessions();
  return "pool of " + std::to_string(pool.hosts_size()) +
         (pool.hosts_size() == 1 ? " host" : " hosts") + " as " + Printable(pool.host()) +
         " sees it, placed by " + (pool.placer().empty() ? "nobody" : Printable(pool.placer())) +
         ", " + std::to_string(sessions) + (sessions == 1 ? " session, " : " sessions, ") +
         std::to_string(pool.waiting_size()) + " waiting";
}

std::string PoolAlarmLine(const PoolFigures& pool) {
  // Also why etcd does not answer, where the rest is not known.
  if (!pool.problem().empty()) return "problem: " + Printable(pool.problem());
  return pool.placer().empty() ? "no host places sessions just now" : "";
}

std::vector<std::string> HostLines(const PoolFigures& pool, int width) {
  Table table({{"HOST", 8},
               {"DEVICE", 6},
               {"NAME", 8, false, 2},
               {"BUSY", 4, true},
               {"PROMISED", 8, true},
               {"SESSIONS", 8, true},
               {"STATE", 10},
               {"VERSION", 7, false, 1},
               {"LABELS", 6, false, 3}});
  for (const PoolHost& host : pool.hosts()) {
    const Sums sums = SumsOf(host);
    table.Add({Printable(host.name()), "all " + std::to_string(host.devices_size()), "",
               Percent(sums.busy), MemoryText(sums.promised, sums.total),
               std::to_string(host.sessions()) + "/" + std::to_string(host.sessions_limit()),
               Printable(HostState(host)), Printable(host.version()),
               Printable(Joined(host.labels()))});
    for (const PoolDevice& device : host.devices()) {
      table.Add({"", std::to_string(device.ordinal()), Printable(device.name()),
                 Percent(device.busy()), MemoryText(device.promised(), device.total()),
                 std::to_string(device.sessions()),
                 device.cordoned() ? "cordoned"
                 : device.alone()  ? "alone"
                                   : "",
                 "", ""});
    }
  }
  return table.Lines(width);
}

std::vector<std::string> QueueLines(const PoolFigures& pool, int width) {
  Table table({{"PLACE", 5, true},
               {"WAITED", 6, true},
               {"TENANT", 8, false, 3},
               {"IDENTITY", 8, false, 2},
               {"PROGRAM", 8},
               {"DEVICES", 7, true},
               {"MEMORY", 6, true},
               {"ASKED AT", 8, false, 1},
               {"WHY", 20}});
  for (const PoolWaiter* waiter : InOrder(pool)) {
    table.Add({waiter->place() == 0 ? "-" : std::to_string(waiter->place()),
               SecondsText(static_cast<double>(waiter->waited())), Printable(waiter->tenant()),
               Printable(waiter->identity()), Printable(FileName(waiter->program())),
               std::to_string(waiter->devices()),
               waiter->bytes() == 0 ? "-" : BytesText(waiter->bytes()), Printable(waiter->front()),
               Printable(waiter->reason())});
  }
  return table.Lines(width);
}

std::string PoolText(const PoolFigures& pool) {
  std::string text = PoolHeadLine(pool) + "\n";
  if (!PoolAlarmLine(pool).empty()) text += PoolAlarmLine(pool) + "\n";
  AddLines(HostLines(pool, 0), &text);
  if (pool.waiting_size() == 0) return text + "\nnobody waits\n";
  AddLines(QueueLines(pool, 0), &text);
  return text;
}

std::string NotInPool(const std::string& server) {
  return "the server at " + server +
         " is not in a pool: its configuration has no pool:. Ask a server that is in one";
}

}  // namespace longwire::cli::top
