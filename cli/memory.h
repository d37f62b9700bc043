// The output of `longwire memory`, from a server's reply.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "proto/transport.pb.h"

namespace longwire::cli {

// A device's memory as text: a bar with a letter for each session, and what the letters mean.
std::string MemoryMap(const transport::InspectReply& reply, const transport::Device& device);

// A device's memory over time.
struct MemoryHistory {
  struct Sample {
    double seconds = 0;                   // since 1970
    std::map<uint64_t, uint64_t> leased;  // by session
    uint64_t idle = 0;
    uint64_t clearing = 0;  // part of idle
  };
  std::string title;
  uint64_t total = 0;
  std::vector<Sample> samples;
  std::vector<transport::MemoryEvent> events;
  std::map<uint64_t, std::string> names;  // of sessions
};

// One picture of all devices as SVG, or an HTML page around it.
std::string MemoryTimeline(const std::vector<MemoryHistory>& devices, bool html);

}  // namespace longwire::cli
