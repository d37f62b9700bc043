// A program that asks for its own session to be suspended, or to go on (wire/suspension.h). Of
// several servers the one that has the session answers.
#include "wire/checkpoints/suspension.h"

#include "link/link_session.h"
#include "link/transport/log.h"

namespace longwire::link {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kConnectPatience{3300};
// A server that writes or reads much memory takes minutes.
constexpr std::chrono::minutes kAnswerPatience{30};
// Of a session that has just moved: until its lanes have heard where it is.
constexpr int kLooks = 4;
constexpr std::chrono::milliseconds kBetweenLooks{500};

transport::SuspendRequest RequestFor(const wire::SuspensionRequest& asked) {
  transport::SuspendRequest request;
  request.set_client_version(LONGWIRE_VERSION);
  request.set_wish(static_cast<transport::SuspendRequest::Wish>(asked.wish));
  request.set_session(asked.session);
  request.set_client_host(asked.host);
  request.set_client_pid(asked.pid);
  if (asked.device != std::array<uint8_t, 16>{}) {
    request.set_device(asked.device.data(), asked.device.size());
  }
  return request;
}

}  // namespace

// True if the server has answered for the session.
bool LinkSession::AskSuspension(const transport::Address& server,
                                const transport::SuspendRequest& request,
                                wire::SuspensionReply* reply) {
  const std::atomic<bool> never{false};
  std::string sentence;
  auto channel = servers_.Reach(server, Clock::now() + kConnectPatience, never, &sentence);
  if (!channel) {
    reply->sentence = sentence;
    return false;
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAnswerPatience);
  transport::SuspendReply answer;
  grpc::Status status =
      transport::Transport::NewStub(channel->channel)->Suspend(&context, request, &answer);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    reply->answered = true;
    reply->sentence = channel->server +
                      " suspends no sessions for their programs; its longwired is older than this "
                      "Longwire: upgrade it";
  } else if (!status.ok()) {
    reply->sentence = ExplainStatus(channel->server, status);
  } else {
    reply->sentence = answer.sentence();
    reply->answered = answer.known();
    reply->done = answer.done();
    reply->suspended = answer.suspended();
  }
  servers_.GiveBack(*std::move(channel));
  return reply->answered;
}

// The server to which the program's session has moved may be none of those that it names, and has
// another number for it. The program asks by a connection of its own.
bool LinkSession::AskWhereItIs(transport::SuspendRequest request, wire::SuspensionReply* reply) {
  const auto program = wire::PeerCredentials(socket_.get());
  if (!program) return false;
  for (const ServerConnection::SessionPlace& place : servers_.PlacesOf(program->pid)) {
    std::string problem;
    auto server = transport::ParseAddress(place.server, &problem);
    request.set_session(place.session);
    if (server && AskSuspension(*server, request, reply)) return true;
  }
  return false;
}

bool LinkSession::AskServers(const transport::SuspendRequest& request,
                             wire::SuspensionReply* reply) {
  if (AskWhereItIs(request, reply)) return true;
  for (const transport::Address& server : servers_.Order()) {
    if (AskSuspension(server, request, reply)) return true;
  }
  return false;
}

void LinkSession::AnswerSuspension(const wire::Message& message) {
  wire::SuspensionRequest asked;
  wire::Reader reader(message.bytes);
  wire::SuspensionReply reply;
  if (asked.Decode(reader) != wire::WireResult::kOk) {
    reply.sentence = "longwire-link does not understand the program's request";
  } else {
    reply.sentence = servers_.problem();
    const transport::SuspendRequest request = RequestFor(asked);
    for (int i = 0; i < kLooks && !AskServers(request, &reply); ++i) {
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
  transport::Log(transport::LogLevel::kInfo, asked.session,
                 "its program asked for a suspension or its end: " + reply.sentence);
  wire::Writer writer;
  reply.Encode(writer);
  wire::SendMessage(socket_.get(), writer.span());
}

}  // namespace longwire::link
