#include "nvml-shim/question.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "client-shim/connect/connection.h"

namespace longwire::nvml {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};

std::vector<std::byte> EncodeRequest(const shim::Options& options) {
  wire::ViewRequest request;
  // Of the process that asks, which may be a child of the one that initialised.
  request.pid = static_cast<uint32_t>(getpid());
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  request.host = host;
  request.devices = options.devices;
  wire::Writer writer;
  request.Encode(writer);
  return {writer.data(), writer.data() + writer.size()};
}

}  // namespace

bool AskServer(const shim::Options& options, wire::ViewReply* reply, std::string* sentence) {
  Clock::time_point deadline = Clock::now() + kPatience;
  std::string to = "cannot ask " + options.server + " for its devices: ";
  wire::Descriptor socket = shim::ConnectToServer(options, deadline, sentence);
  if (!socket.valid()) {
    *sentence = to + *sentence;
    return false;
  }
  (void)wire::SendMessage(socket.get(), EncodeRequest(options));  // the reason lies there if closed
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  bool closed = false;
  auto message =
      wire::ReceiveMessage(socket.get(), std::max(left, std::chrono::milliseconds(1)), &closed);
  if (!message) {
    *sentence = to + (closed ? "the connection was closed" : "no answer within 5 seconds");
    return false;
  }
  wire::Reader reader(message->bytes);
  if (reply->Decode(reader) != wire::WireResult::kOk) {
    *sentence = to + "the answer cannot be read; are client and server of the same version?";
    return false;
  }
  std::string problem = wire::ProblemOfAnswer(reply->code != 0, reply->protocol, reply->versions);
  if (!problem.empty()) {
    *sentence = to + problem;
    return false;
  }
  if (reply->code != 0) *sentence = to + reply->sentence;
  return reply->code == 0;
}

}  // namespace longwire::nvml
