#include "cli/bench/facts.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <thread>

#include "cli/operator/operator.h"
#include "cli/ping.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"

namespace longwire::cli {
namespace {

constexpr int kRoundTrips = 50;
constexpr const char* kSoftwareDevice = "Software device";  // softgpu/driver/device names it so

std::string Now() {
  char text[sizeof("2026-11-26T20:00:00Z")];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string RoundTripText(double microseconds) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.1f", microseconds);
  return text;
}

bool IsSoftware(const std::string& device) { return device.starts_with(kSoftwareDevice); }

}  // namespace

BenchFacts GatherBenchFacts(const ServerOptions& options) {
  transport::PrepareProcess();
  BenchFacts facts;
  facts.server = options.server;
  facts.processors = std::thread::hardware_concurrency();
  facts.date = Now();
  std::string sentence;
  transport::InspectReply reply;
  if (Operator(options, Operator::Prefers::kLocal).Inspect({}, &reply, &sentence)) {
    facts.version = reply.daemon().version();
    for (const transport::Device& device : reply.devices()) facts.devices.push_back(device.name());
  }
  if (options.server.starts_with("unix:")) return facts;
  if (auto server = ConnectTo(options, &sentence)) {
    auto times = MeasureRoundTrips(server->channel, kRoundTrips);
    if (times) facts.round_trip = (*times)[times->size() / 2];
  }
  return facts;
}

std::string TextOf(const BenchFacts& facts) {
  std::string text = "server " + Printable(facts.server);
  if (!facts.version.empty()) text += ": longwired " + Printable(facts.version);
  for (const std::string& device : facts.devices) text += ", " + Printable(device);
  if (facts.round_trip) text += ", round trip " + RoundTripText(*facts.round_trip) + " us";
  text += "\nthis host: " + std::to_string(facts.processors) + " processors; " + facts.date + "\n";
  if (std::ranges::any_of(facts.devices, IsSoftware)) {
    text += "The server has the software device: these figures say nothing about a GPU.\n";
  }
  return text + "\n";
}

std::string JsonOf(const BenchFacts& facts) {
  std::string devices;
  for (const std::string& one : facts.devices)
    devices += (devices.empty() ? "" : ",") + JsonString(one);
  return "\"server\":" + JsonString(facts.server) +
         ",\"version\":" + (facts.version.empty() ? "null" : JsonString(facts.version)) +
         ",\"devices\":[" + devices + "],\"software_device\":" +
         (std::ranges::any_of(facts.devices, IsSoftware) ? "true" : "false") +
         ",\"round_trip_us\":" + (facts.round_trip ? RoundTripText(*facts.round_trip) : "null") +
         ",\"processors\":" + std::to_string(facts.processors) +
         ",\"date\":" + JsonString(facts.date) + ",";
}

}  // namespace longwire::cli
