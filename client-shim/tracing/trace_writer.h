// From notes and measurements to the trace's lines, all on this host's clock.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client-shim/tracing/recorder.h"
#include "client-shim/tracing/server_clock.h"
#include "client-shim/tracing/trace_file.h"
#include "longwire/calls.h"
#include "wire/open.h"

namespace longwire::shim {

// What one session's spans are of.
struct TracedSession {
  int server = 0;
  std::string name;          // of the server, where there are several; else empty
  std::vector<int> devices;  // the program's number of each of the session's; -1: it sees it not
  ServerClock clock;
};

// As the source has it, or the name itself if it is none of C++.
std::string Demangled(std::string_view name);

class TraceWriter {
 public:
  explicit TraceWriter(TraceFile& file) : file_(file) {}

  // The names of the parts: the program, and what serves it.
  void Begin(uint64_t start);
  void Begin(const TracedSession& session, const wire::OpenReply& opened);
  void Write(const Notes& notes);
  void Write(const std::vector<calls::CallSpan>& spans, const TracedSession& session);
  void Name(const TracedSession& session, uint64_t function, std::string_view name);
  // What is known of the server's clock.
  void WriteClock(const TracedSession& session);

 private:
  // Notes of calls whose measurements have not come, at most; the oldest go.
  static constexpr size_t kSentLimit = size_t{1} << 18;

  // What probes saw (trace_probes.cc).
  void WriteProbes(std::vector<ProbeNote> notes);
  uint32_t ProbePart(const ProbeNote& note);
  void WriteProbe(const ProbeNote& note);
  void NameTrack(uint32_t part, uint64_t track, const std::string& name);
  void WriteSpan(const calls::CallSpan& span, const TracedSession& session);
  uint64_t WriteDeviceSpan(const calls::CallSpan& span, const TracedSession& session, uint64_t sent,
                           uint64_t begun);
  std::string NameOf(const calls::CallSpan& span, const TracedSession& session) const;

  TraceFile& file_;
  std::map<uint64_t, SentNote> sent_;                         // by position
  std::map<std::pair<int, uint64_t>, std::string> names_;     // of servers' functions
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> tracks_;  // when the last span ended
  std::vector<std::string> probe_maps_;                       // that were seen, in that order
  std::set<uint32_t> probe_parts_;                            // that have a name
};

}  // namespace longwire::shim
