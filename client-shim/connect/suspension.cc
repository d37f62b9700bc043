#include "client-shim/connect/suspension.h"

#include <unistd.h>

#include <chrono>

#include "client-shim/connect/connection.h"
#include "client-shim/connect/options.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kLinkReachTime{5};
// The link's own patience with its server, and a little more (link/suspension.cc).
constexpr std::chrono::minutes kSuspensionTime{31};

std::string AskLink(const wire::SuspensionRequest& request, wire::SuspensionReply* reply) {
  std::string sentence;
  wire::Descriptor socket =
      ConnectToServer(ProcessOptions(), Clock::now() + kLinkReachTime, &sentence);
  if (!socket.valid()) return sentence;
  wire::Writer writer;
  request.Encode(writer);
  (void)wire::SendMessage(socket.get(), writer.span());  // the reason lies there if closed
  bool closed = false;
  auto message = wire::ReceiveMessage(socket.get(), milliseconds(kSuspensionTime), &closed);
  if (!message) return closed ? "longwire-link has closed the connection" : "no answer in time";
  wire::Reader reader(message->bytes);
  if (reply->Decode(reader) == wire::WireResult::kOk) return "";
  *reply = {};
  return "longwire-link on this host is older than this library: end it, or the programs that it "
         "serves, and start the program again";
}

}  // namespace

wire::SuspensionReply AskToSuspend(const ClientSession& session, wire::SuspensionRequest request) {
  request.session = session.opened().session;
  request.pid = static_cast<uint32_t>(getpid());
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  request.host = host;
  wire::SuspensionReply reply;
  const std::string problem = AskLink(request, &reply);
  if (!problem.empty()) reply.sentence = "the server cannot be asked: " + problem;
  return reply;
}

}  // namespace longwire::shim
