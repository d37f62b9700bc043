// Who looks at the page, and what he may see: the daemon decides, by the certificate. Thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "web/daemon_client.h"

namespace longwire::web {

struct Viewer {
  std::string identity;  // empty: without TLS
  std::string tenant;
  bool admin = false;  // sees all tenants

  bool MaySee(const std::string& other) const {
    return admin || (!tenant.empty() && tenant == other);
  }
};

// As the daemon answers the viewer itself: what is not his is taken out.
transport::InspectReply Seen(const transport::InspectReply& reply, const Viewer& viewer);

class Viewers {
 public:
  explicit Viewers(const DaemonClient& daemon) : daemon_(daemon) {}

  enum class Verdict { kKnown, kRefused, kUnanswered };
  // By a certificate chain (PEM, the viewer's own first), with whose key the connection was made.
  // *sentence: why he is refused, or why nobody knows.
  Verdict Find(const std::string& chain, Viewer* viewer, std::string* sentence);

 private:
  struct Answer {
    std::chrono::steady_clock::time_point time;
    transport::WhoReply reply;
  };

  const DaemonClient& daemon_;
  base::Mutex mutex_{base::ranks::kWebViewers};
  std::map<std::string, Answer> answers_ LONGWIRE_GUARDED_BY(mutex_);  // by the chain
};

}  // namespace longwire::web
