#include "link/link_session.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "wire/view.h"

namespace longwire::link {
namespace {

using transport::Log;
using transport::LogLevel;

// The program gives up after 5 s; it shall have our sentence before.
constexpr std::chrono::milliseconds kConnectPatience{3300};
// A worker that is started on demand initialises the driver first.
constexpr std::chrono::seconds kOpenPatience{60};
constexpr int kOpenAttempts = 3;
constexpr std::chrono::seconds kRequestPatience{5};
// Connecting is part of it.
constexpr std::chrono::milliseconds kViewPatience{4600};

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

bool TokensFit(const transport::OpenSessionReply& answer, const wire::OpenReply& reply) {
  const auto& tokens = answer.transfer_tokens();
  return answer.resume_token().size() == transport::kTokenBytes &&
         static_cast<uint32_t>(tokens.size()) == reply.lanes &&
         std::all_of(tokens.begin(), tokens.end(), [](const std::string& token) {
           return token.size() == transport::kTokenBytes;
         });
}

wire::ProcessDescription Myself() {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return {"longwire-link", host, static_cast<uint32_t>(getpid())};
}

}  // namespace

void LinkSession::Run() {
  auto message = wire::ReceiveMessage(socket_.get(), kRequestPatience);
  if (!message || message->bytes.size() > wire::kMaxOpenBytes) return;
  if (wire::IsViewRequest(message->bytes)) {
    AnswerView(*message);
  } else if (Open(*message)) {
    Relay();
  }
  if (server_.channel != nullptr) servers_.GiveBack(std::move(server_));
}

void LinkSession::ProgramGone() {
  std::lock_guard lock(mutex_);
  if (gone_) return;
  gone_ = true;
  if (open_context_ != nullptr) open_context_->TryCancel();
  if (!open_) return;
  for (auto& lane : lanes_) lane->Stop({});
}

void LinkSession::Refuse(int32_t code, const std::string& sentence) {
  Log(LogLevel::kWarning, sentence);
  wire::OpenReply reply;
  reply.code = code;
  reply.sentence = sentence;
  wire::Writer writer;
  reply.Encode(writer);
  wire::SendMessage(socket_.get(), writer.span());
}

grpc::Status LinkSession::CallOpen(const transport::OpenSessionRequest& request,
                                   transport::OpenSessionReply* answer) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kOpenPatience);
  {
    std::lock_guard lock(mutex_);
    if (gone_) return {grpc::StatusCode::CANCELLED, "the program has gone"};
    open_context_ = &context;
  }
  auto status = transport::Transport::NewStub(server_.channel)->Open(&context, request, answer);
  std::lock_guard lock(mutex_);
  open_context_ = nullptr;
  return status;
}

void LinkSession::RefuseView(const std::string& sentence) {
  Log(LogLevel::kWarning, sentence);
  wire::ViewReply reply;
  reply.code = transport::kNoDevice;
  reply.sentence = sentence;
  wire::Writer writer;
  reply.Encode(writer);
  wire::SendMessage(socket_.get(), writer.span());
}

void LinkSession::AnswerView(const wire::Message& message) {
  transport::InspectRequest request;
  request.set_client_version(LONGWIRE_VERSION);
  request.set_view(message.bytes.data(), message.bytes.size());
  transport::InspectReply answer;
  std::string sentence;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kViewPatience);
  server_ = servers_.Take(kConnectPatience, &sentence).value_or(ServerChannel{});
  if (server_.channel == nullptr) {
    RefuseView(sentence);
    return;
  }
  grpc::Status status =
      transport::Transport::NewStub(server_.channel)->Inspect(&context, request, &answer);
  if (!status.ok()) {
    RefuseView(ExplainStatus(server_.server, status));
  } else if (answer.view().empty()) {
    RefuseView(server_.server + " is older than this Longwire: upgrade longwired there");
  } else {
    wire::SendMessage(socket_.get(), BytesOf(answer.view()));
  }
}

bool LinkSession::Open(const wire::Message& message) {
  transport::OpenSessionRequest request;
  request.set_request(message.bytes.data(), message.bytes.size());
  request.set_client_version(LONGWIRE_VERSION);
  transport::OpenSessionReply answer;
  grpc::Status status;
  for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
    std::string sentence;
    server_ = servers_.Take(kConnectPatience, &sentence).value_or(ServerChannel{});
    if (server_.channel == nullptr) {
      Refuse(transport::kNoDevice, sentence);
      return false;
    }
    status = CallOpen(request, &answer);
    // The connection broke: if a session was opened, the server drops it, as nobody attaches to it.
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) break;
  }
  wire::OpenReply reply;
  wire::Reader reader(BytesOf(answer.reply()));
  if (!status.ok()) {
    Refuse(transport::kNoDevice, ExplainStatus(server_.server, status));
  } else if (reply.Decode(reader) != wire::WireResult::kOk ||
             (answer.session() != 0 && !TokensFit(answer, reply))) {
    Refuse(transport::kNoDevice,
           server_.server + " answered with something this version does not understand");
  } else if (answer.session() == 0) {
    Refuse(reply.code == 0 ? transport::kNoDevice : reply.code, reply.sentence);
  } else {
    session_ = answer.session();
    if (MakeLanes(answer, reply)) return ReplyToProgram(std::move(reply));
    Refuse(transport::kOutOfMemory, "longwire-link has no memory for a session's rings");
  }
  return false;
}

bool LinkSession::MakeLanes(const transport::OpenSessionReply& answer,
                            const wire::OpenReply& reply) {
  for (uint32_t number = 0; number <= reply.lanes; ++number) {
    Lane::Right right;
    right.session = session_;
    const std::string& token =
        number == 0 ? answer.resume_token() : answer.transfer_tokens(static_cast<int>(number) - 1);
    std::memcpy(right.token.data(), token.data(), right.token.size());
    right.resume_grace = std::chrono::milliseconds(answer.resume_grace_milliseconds());
    lanes_.push_back(std::make_unique<Lane>(number));
    lanes_.back()->SetRight(right);
    if (!lanes_.back()->CreateRings(number == 0 ? wire::kRingBytes : wire::kLaneRingBytes)) {
      return false;
    }
  }
  return true;
}

bool LinkSession::ReplyToProgram(wire::OpenReply reply) {
  Lane& log = *lanes_[0];
  log.SetServer(std::move(server_));
  reply.processes.push_back(Myself());
  wire::Writer writer;
  reply.Encode(writer);
  std::vector<int> rings;
  for (auto& lane : lanes_) {
    rings.push_back(lane->up_descriptor());
    rings.push_back(lane->down_descriptor());
  }
  if (!log.Attach()) {
    Refuse(transport::kNoDevice, "the connection to " + log.server().server + " broke at once");
    return false;
  }
  {
    std::lock_guard lock(mutex_);
    if (gone_) return false;
    open_ = true;
  }
  return wire::SendMessage(socket_.get(), writer.span(), rings);
}

// Until the program uses it a lane costs a sleeping thread and no connection.
void LinkSession::RelayLane(Lane& lane) {
  if (!lane.WaitForBytes()) return;
  lane.SetServer(servers_.Beside(lanes_[0]->server()));
  // What a lane has lost nobody sends again: without it the session cannot go on.
  if (!lane.Relay()) lanes_[0]->Stop(lane.closed());
}

void LinkSession::Relay() {
  Lane& log = *lanes_[0];
  Log(LogLevel::kInfo, session_, "opened at " + log.server().server);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < lanes_.size(); ++i) {
    threads.emplace_back([this, lane = lanes_[i].get()] { RelayLane(*lane); });
  }
  log.Relay();
  EndForProgram();
  for (size_t i = 1; i < lanes_.size(); ++i) lanes_[i]->Stop(log.closed());
  for (std::thread& thread : threads) thread.join();
  for (auto& lane : lanes_) {
    if (lane->server().channel != nullptr) servers_.GiveBack(std::move(lane->server()));
  }
}

void LinkSession::EndForProgram() {
  const transport::Closed& closed = lanes_[0]->closed();
  const std::string& sentence = closed.sentence;
  Log(LogLevel::kInfo, session_,
      "ended, code " + std::to_string(closed.code) + (sentence.empty() ? "" : ": " + sentence));
  // For the program's standard error, should it look: the rings carry only the code.
  if (!sentence.empty()) wire::SendMessage(socket_.get(), BytesOf(sentence));
  for (auto& lane : lanes_) lane->CloseRings(closed.code);
}

}  // namespace longwire::link
