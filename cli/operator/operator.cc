#include "cli/operator/operator.h"

#include <cstring>

#include "server/daemon/access/control_client.h"

namespace longwire::cli {
namespace {

constexpr const char* kLocalPrefix = "unix:";
// The daemon reads and checks files, or waits for its warden.
constexpr std::chrono::seconds kPatience = daemon::kControlPatience;
// Of what carries the memory of sessions: longer than the daemon itself waits for it.
constexpr std::chrono::hours kCarryPatience{2};

std::chrono::seconds PatienceFor(const transport::AdminRequest& request) {
  const bool carries =
      request.has_migrate() || request.has_checkpoint() || request.has_restore() ||
      (request.has_drain() && (request.drain().has_device() || !request.drain().to().empty()));
  return carries ? kCarryPatience : kPatience;
}

// The control socket is in the local socket's folder.
std::string ControlBeside(const std::string& server) {
  std::string socket = server.substr(std::strlen(kLocalPrefix));
  size_t folder = socket.rfind('/');
  return (folder == std::string::npos ? "" : socket.substr(0, folder + 1)) + "control";
}

}  // namespace

Operator::Operator(const ServerOptions& options, Prefers prefers) : options_(options) {
  const std::string& server = options.server;
  if (server.empty()) {
    control_paths_ = daemon::ControlPaths();
  } else if (server.starts_with(kLocalPrefix)) {
    control_paths_ = {ControlBeside(server)};
  } else {
    network_ = true;
    std::string problem;
    auto address = transport::ParseAddress(server, &problem);
    if (prefers != Prefers::kLocal || !options.identity.none() || !address ||
        !transport::IsLoopback(*address)) {
      return;
    }
    control_paths_ = daemon::ControlPaths();
    port_ = address->port;
  }
}

Operator::Asked Operator::AskHere(transport::ControlRequest request, transport::ControlReply* reply,
                                  std::string* sentence) {
  request.set_client_version(LONGWIRE_VERSION);
  request.set_port(port_);
  std::string first;
  for (const std::string& path : control_paths_) {
    bool absent = false;
    std::string bytes;
    bool answered = daemon::AskControl(path, request.SerializeAsString(),
                                       PatienceFor(request.admin()), &bytes, sentence, &absent);
    if (answered && !reply->ParseFromString(bytes)) {
      answered = false;
      *sentence = "the answer of longwired at " + path + " cannot be read";
    }
    if (first.empty()) first = *sentence;
    if (absent || (answered && reply->another_daemon())) continue;
    name_ = path;
    if (answered && !reply->refusal().empty()) *sentence = reply->refusal();
    if (answered && reply->refusal().empty()) return Asked::kYes;
    return network_ ? Asked::kAbsent : Asked::kNo;
  }
  *sentence = options_.server.empty()
                  ? "no server; give --server HOST:PORT or set LONGWIRE_SERVER (" + first + ")"
                  : first;
  return Asked::kAbsent;
}

bool Operator::Connect(std::string* sentence) {
  if (!server_) server_ = ConnectTo(options_, sentence);
  if (server_) name_ = server_->server;
  return server_.has_value();
}

bool Operator::Inspect(const transport::InspectRequest& request, transport::InspectReply* reply,
                       std::string* sentence) {
  transport::ControlRequest here;
  *here.mutable_inspect() = request;
  transport::ControlReply answer;
  Asked asked = AskHere(std::move(here), &answer, sentence);
  if (asked == Asked::kYes) *reply = std::move(*answer.mutable_inspect());
  if (asked != Asked::kAbsent || !network_) return asked == Asked::kYes;
  return Connect(sentence) && InspectServer(*server_, reply, sentence, request);
}

bool Operator::Administer(const transport::AdminRequest& request, transport::AdminReply* reply,
                          std::string* sentence) {
  transport::ControlRequest here;
  *here.mutable_admin() = request;
  here.mutable_admin()->set_client_version(LONGWIRE_VERSION);
  transport::ControlReply answer;
  Asked asked = AskHere(std::move(here), &answer, sentence);
  if (asked == Asked::kYes) *reply = std::move(*answer.mutable_admin());
  if (asked != Asked::kAbsent || !network_) return asked == Asked::kYes;
  if (!Connect(sentence)) return false;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + PatienceFor(request));
  transport::AdminRequest over = request;
  over.set_client_version(LONGWIRE_VERSION);
  grpc::Status status =
      transport::Transport::NewStub(server_->channel)->Admin(&context, over, reply);
  if (!status.ok()) *sentence = link::ExplainStatus(server_->server, status);
  return status.ok();
}

}  // namespace longwire::cli
