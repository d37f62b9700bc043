#include "server/daemon/access/control_client.h"

#include <cerrno>
#include <chrono>
#include <span>

#include "base/reason.h"
#include "server/daemon/settings/paths.h"
#include "wire/number.h"
#include "wire/socket.h"

namespace longwire::daemon {
namespace {

constexpr std::chrono::seconds kPatience = kControlPatience;
constexpr const char* kSystemControl = "/run/longwire/control";

std::string_view TextOf(const wire::Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

bool Send(const wire::Descriptor& socket, std::string_view text) {
  return wire::SendMessage(socket.get(), std::as_bytes(std::span(text)));
}

wire::Descriptor Connect(const std::string& path, std::string* sentence, bool* absent) {
  wire::Descriptor socket = wire::ConnectLocal(path);
  *absent = !socket.valid() && errno != EACCES && errno != EPERM;
  if (socket.valid()) return socket;
  *sentence = *absent ? "no longwired answers at " + path + ": " + base::Reason(errno)
                      : "this user may not use " + path +
                            ": longwired on its own host is administered by root, by the user that "
                            "it runs as and by members of its admin_group";
  return socket;
}

// The bytes that follow the head "reply\nSIZE\n".
bool ReceiveReply(const wire::Descriptor& socket, std::string_view head, std::string* bytes) {
  head.remove_prefix(kReplyWord.size());
  auto size = wire::ParseNumber(std::string(head.substr(0, head.find('\n'))), 0,
                                static_cast<int64_t>(kMaxControlReply));
  bytes->clear();
  while (size && bytes->size() < static_cast<size_t>(*size)) {
    auto part = wire::ReceiveMessage(socket.get(), kPatience);
    if (!part) return false;
    *bytes += TextOf(*part);
  }
  return size && bytes->size() == static_cast<size_t>(*size);
}

}  // namespace

std::string ControlPath() { return RuntimeDirectory() + "/control"; }

std::vector<std::string> ControlPaths() {
  std::vector<std::string> paths = {ControlPath()};
  if (paths[0] != kSystemControl) paths.emplace_back(kSystemControl);
  return paths;
}

bool AskControl(const std::string& path, const std::string& request, std::chrono::seconds patience,
                std::string* reply, std::string* sentence, bool* absent) {
  wire::Descriptor socket = Connect(path, sentence, absent);
  if (!socket.valid()) return false;
  // One that refuses does not wait for it.
  Send(socket, std::string(kCallWord) + request);
  auto head = wire::ReceiveMessage(socket.get(), patience);
  std::string_view said = head ? TextOf(*head) : "";
  if (said.starts_with(kReplyWord) && ReceiveReply(socket, said, reply)) return true;
  if (said.starts_with(kRefusedWord)) {
    said.remove_prefix(kRefusedWord.size());
    *sentence = said.substr(0, said.find('\n'));
  } else {
    *sentence = "longwired did not answer at " + path +
                "; see its log, and whether it is of the "
                "version of this command";
  }
  return false;
}

bool AskForReload(const std::string& path, std::string* text) {
  bool absent = false;
  wire::Descriptor socket = Connect(path, text, &absent);
  if (!socket.valid()) {
    *text += "\n";
    return false;
  }
  // One that refuses does not wait for the word.
  Send(socket, kReloadWord);
  auto answer = wire::ReceiveMessage(socket.get(), kPatience);
  std::string_view said = answer ? TextOf(*answer) : "";
  bool done = said.starts_with(kDoneWord);
  bool refused = said.starts_with(kRefusedWord);
  if (done || refused) {
    *text = said.substr(said.find('\n') + 1);
  } else {
    *text = "longwired did not report the result; see its log\n";
  }
  return done;
}

}  // namespace longwire::daemon
