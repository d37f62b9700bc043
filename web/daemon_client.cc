#include "web/daemon_client.h"

#include "server/daemon/access/control_client.h"

namespace longwire::web {

bool DaemonClient::Ask(transport::ControlRequest request, transport::ControlReply* reply,
                       std::string* sentence) const {
  request.set_client_version(LONGWIRE_VERSION);
  std::string first;
  for (const std::string& path : paths_) {
    bool absent = false;
    std::string bytes;
    bool answered = daemon::AskControl(path, request.SerializeAsString(), daemon::kControlPatience,
                                       &bytes, sentence, &absent);
    if (answered && !reply->ParseFromString(bytes)) {
      *sentence = "the answer of longwired at " + path + " cannot be read";
      return false;
    }
    if (answered && reply->refusal().empty()) return true;
    if (answered) *sentence = reply->refusal();
    if (first.empty()) first = *sentence;
    if (!absent) return false;
  }
  *sentence = first;
  return false;
}

}  // namespace longwire::web
