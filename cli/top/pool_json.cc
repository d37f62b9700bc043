// The pool as one JSON object, for scripts and for the page.
#include <cstdio>

#include "cli/text.h"
#include "cli/top/pool_lines.h"

namespace longwire::cli::top {
namespace {

template <class Items, class Text>
std::string List(const Items& items, Text text) {
  std::string list;
  for (const auto& item : items) list += (list.empty() ? "" : ",") + text(item);
  return "[" + list + "]";
}

const char* Truth(bool value) { return value ? "true" : "false"; }
std::string OrNull(const std::string& text) { return text.empty() ? "null" : JsonString(text); }

std::string Json(const transport::PoolDevice& device) {
  char busy[32];
  std::snprintf(busy, sizeof(busy), "%.6f", device.busy());
  return "{\"device\":" + std::to_string(device.ordinal()) +
         ",\"name\":" + JsonString(device.name()) + ",\"busy\":" + busy +
         ",\"memory_promised\":" + std::to_string(device.promised()) +
         ",\"memory_total\":" + std::to_string(device.total()) +
         ",\"sessions\":" + std::to_string(device.sessions()) +
         ",\"cordoned\":" + Truth(device.cordoned()) + (device.alone() ? ",\"alone\":true" : "") +
         "}";
}

std::string Json(const transport::PoolHost& host) {
  const transport::PoolWithdrawal& told = host.withdrawn();
  const bool ends = told.drain() && told.heard() && told.seconds() != 0;
  return "{\"host\":" + JsonString(host.name()) + ",\"in_pool\":" + Truth(host.joined()) +
         ",\"address\":" + OrNull(host.address()) + ",\"version\":" + OrNull(host.version()) +
         ",\"state\":" + JsonString(HostState(host)) + ",\"takes_sessions\":" +
         Truth(host.joined() && !host.cordoned() && host.unknown().empty()) +
         ",\"drained\":" + Truth(told.drain()) + ",\"withdrawn_by\":" + OrNull(told.by()) +
         ",\"drain_seconds_left\":" + (ends ? std::to_string(told.left()) : "null") +
         ",\"sessions\":" + std::to_string(host.sessions()) +
         ",\"sessions_limit\":" + std::to_string(host.sessions_limit()) +
         ",\"labels\":" + List(host.labels(), JsonString) +
         ",\"devices\":" + List(host.devices(), [](const auto& one) { return Json(one); }) + "}";
}

std::string Json(const transport::PoolWaiter& waiter) {
  return "{\"place\":" + (waiter.place() == 0 ? "null" : std::to_string(waiter.place())) +
         ",\"waited_seconds\":" + std::to_string(waiter.waited()) +
         ",\"tenant\":" + JsonString(waiter.tenant()) +
         ",\"identity\":" + JsonString(waiter.identity()) +
         ",\"program\":" + JsonString(waiter.program()) +
         ",\"devices\":" + std::to_string(waiter.devices()) +
         ",\"memory\":" + std::to_string(waiter.bytes()) +
         ",\"labels\":" + List(waiter.labels(), JsonString) +
         ",\"priority\":" + std::to_string(waiter.priority()) +
         ",\"asked_at\":" + JsonString(waiter.front()) + ",\"reason\":" + OrNull(waiter.reason()) +
         "}";
}

}  // namespace

std::string PoolJson(const transport::PoolFigures& pool) {
  auto json = [](const auto& one) { return Json(one); };
  return "{\"host\":" + JsonString(pool.host()) + ",\"in_pool\":" + Truth(pool.joined()) +
         ",\"placer\":" + OrNull(pool.placer()) + ",\"problem\":" + OrNull(pool.problem()) +
         ",\"hosts\":" + List(pool.hosts(), json) + ",\"waiting\":" + List(pool.waiting(), json) +
         "}";
}

}  // namespace longwire::cli::top
