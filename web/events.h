// What happened, found by comparing two replies of the daemon: sessions that were opened, ended or
// refused, devices that were cordoned, the daemon's own state. Bounded. No thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "proto/transport.pb.h"

namespace longwire::web {

inline constexpr size_t kMaxEvents = 2000;

struct Event {
  uint64_t number = 0;   // counts up by one
  double seconds = 0;    // since 1970
  std::string kind;      // opened, ended, refused, device or daemon
  std::string tenant;    // whose; empty: nobody's, or everybody's to know
  bool general = false;  // everybody's to know
  std::string text;      // a sentence; names are as the clients gave them
};

class Events {
 public:
  // `before`: the last reply, nullptr if there was none.
  void Compare(double seconds, const transport::InspectReply* before,
               const transport::InspectReply& now);
  // The daemon does not answer any more.
  void Lost(double seconds, const std::string& problem);
  const std::deque<Event>& all() const { return events_; }

 private:
  void Add(double seconds, std::string kind, std::string tenant, std::string text);
  void CompareSessions(double seconds, const transport::InspectReply& before,
                       const transport::InspectReply& now);
  void CompareCounters(double seconds, const transport::InspectReply& before,
                       const transport::InspectReply& now);
  void CompareState(double seconds, const transport::InspectReply& before,
                    const transport::InspectReply& now);

  uint64_t last_ = 0;
  bool lost_ = false;
  std::deque<Event> events_;
};

}  // namespace longwire::web
