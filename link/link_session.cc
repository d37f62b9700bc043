#include "link/link_session.h"

#include <unistd.h>

#include <cstring>

#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "wire/view.h"

namespace longwire::link {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Log;
using transport::LogLevel;
using transport::StreamPump;

// The program gives up after 5 s; it shall have our sentence before.
constexpr std::chrono::milliseconds kConnectPatience{3300};
// A worker that is started on demand initialises the driver first.
constexpr std::chrono::seconds kOpenPatience{60};
constexpr int kOpenAttempts = 3;
constexpr std::chrono::seconds kRequestPatience{5};
// Connecting is part of it.
constexpr std::chrono::milliseconds kViewPatience{4600};
constexpr std::chrono::milliseconds kAttachPatience{3000};
constexpr std::chrono::milliseconds kRetryPause{100};

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
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
  if (pump_ != nullptr) pump_->Stop({});
  gone_changed_.notify_all();
}

bool LinkSession::SleepUnlessGone(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  gone_changed_.wait_for(lock, time, [&] { return gone_; });
  return !gone_;
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
             (answer.session() != 0 && answer.resume_token().size() != transport::kTokenBytes)) {
    Refuse(transport::kNoDevice,
           server_.server + " answered with something this version does not understand");
  } else if (answer.session() == 0) {
    Refuse(reply.code == 0 ? transport::kNoDevice : reply.code, reply.sentence);
  } else {
    session_ = answer.session();
    std::memcpy(token_.data(), answer.resume_token().data(), token_.size());
    resume_grace_ = std::chrono::milliseconds(answer.resume_grace_milliseconds());
    return ReplyToProgram(std::move(reply));
  }
  return false;
}

bool LinkSession::ReplyToProgram(wire::OpenReply reply) {
  up_ = wire::RingMemory::Create(wire::kRingBytes);
  down_ = wire::RingMemory::Create(wire::kRingBytes);
  if (up_ == nullptr || down_ == nullptr) {
    Refuse(transport::kOutOfMemory, "longwire-link has no memory for a session's rings");
    return false;
  }
  relay_ = std::make_unique<transport::RelayEnd>(down_, up_);
  reply.processes.push_back(Myself());
  wire::Writer writer;
  reply.Encode(writer);
  const int rings[] = {up_->descriptor(), down_->descriptor()};
  stream_ = Attach(server_, 1);
  if (stream_ == nullptr) {
    Refuse(transport::kNoDevice, "the connection to " + server_.server + " broke at once");
    return false;
  }
  return wire::SendMessage(socket_.get(), writer.span(), rings) &&
         relay_->StartEpoch(1, 0) == wire::WireResult::kOk;
}

std::unique_ptr<transport::ClientStream> LinkSession::Attach(const ServerChannel& server,
                                                             uint32_t epoch) {
  auto stream = transport::ClientStream::Connect(server.channel, kAttachPatience);
  if (stream == nullptr) return nullptr;
  std::string body = transport::EncodeAttach(
      {session_, token_, relay_->received(), relay_->kept_bytes(), relay_->room_bytes()});
  transport::FrameHeader header = {relay_->sent(), relay_->received(), epoch,
                                   transport::kFrameAttach};
  stream->StartWrite(header, BytesOf(body), nullptr);
  if (stream->Wait(Clock::now() + kAttachPatience) == transport::MessageStream::Event::kWritten) {
    return stream;
  }
  stream->End(true);
  return nullptr;
}

bool LinkSession::TakeAttached(std::span<const std::byte> body) {
  transport::Attached attached;
  if (DecodeAttached(body, &attached) != wire::WireResult::kOk) return false;
  token_ = attached.token;
  relay_->SetFarEnd(attached.kept_bytes, attached.room_bytes);
  return true;
}

bool LinkSession::AwaitAttached(transport::ClientStream& stream, uint32_t epoch) {
  stream.StartRead();
  auto event = stream.Wait(Clock::now() + kAttachPatience);
  if (event != transport::MessageStream::Event::kRead) return false;
  const transport::ReceivedFrame& frame = stream.received();
  std::string body = ControlBody(frame);
  if (frame.header.flags == transport::kFrameClosed) {
    if (transport::DecodeClosed(BytesOf(body), &closed_) != wire::WireResult::kOk) return false;
    resume_grace_ = std::chrono::milliseconds(0);  // refused for good
    return false;
  }
  if (frame.header.flags != transport::kFrameAttached || !TakeAttached(BytesOf(body))) return false;
  return relay_->StartEpoch(epoch, frame.header.position) == wire::WireResult::kOk;
}

bool LinkSession::Reconnect() {
  auto deadline = Clock::now() + resume_grace_;
  uint32_t epoch = relay_->epoch();
  while (Clock::now() < deadline && resume_grace_.count() != 0) {
    if (WaitUntilReady(server_, std::min(deadline, Clock::now() + kConnectPatience), nullptr)) {
      stream_ = Attach(server_, ++epoch);
      if (stream_ != nullptr && AwaitAttached(*stream_, epoch)) {
        Log(LogLevel::kInfo, session_, "resumed");
        return true;
      }
      if (stream_ != nullptr) stream_->End(true);
    }
    if (!SleepUnlessGone(kRetryPause)) return false;
  }
  return false;
}

StreamPump::Outcome LinkSession::PumpOnce() {
  StreamPump pump(*stream_, *relay_, counters_);
  pump.set_on_attached([this](std::span<const std::byte> body) { return TakeAttached(body); });
  {
    std::lock_guard lock(mutex_);
    pump_ = &pump;
    if (gone_) pump.Stop({});
  }
  StreamPump::Outcome outcome = pump.Run();
  {
    std::lock_guard lock(mutex_);
    pump_ = nullptr;
  }
  if (outcome != StreamPump::Outcome::kBroken) closed_ = pump.closed();
  std::string said = stream_->End(outcome == StreamPump::Outcome::kViolation);
  if (outcome == StreamPump::Outcome::kBroken && !said.empty()) closed_.sentence = said;
  return outcome;
}

void LinkSession::Relay() {
  Log(LogLevel::kInfo, session_, "opened at " + server_.server);
  while (true) {
    StreamPump::Outcome outcome = PumpOnce();
    if (outcome != StreamPump::Outcome::kBroken) break;
    Log(LogLevel::kWarning, session_, "connection lost: " + closed_.sentence);
    closed_.code = transport::kLaunchFailed;
    closed_.sentence = "the connection to " + server_.server + " was lost";
    if (!SleepUnlessGone(std::chrono::milliseconds(0)) || !Reconnect()) break;
  }
  EndForProgram(closed_.code, closed_.sentence);
}

void LinkSession::EndForProgram(uint32_t code, const std::string& sentence) {
  Log(LogLevel::kInfo, session_,
      "ended, code " + std::to_string(code) + (sentence.empty() ? "" : ": " + sentence));
  // For the program's standard error, should it look: the rings carry only the code.
  if (!sentence.empty()) wire::SendMessage(socket_.get(), BytesOf(sentence));
  up_->Close(code);
  down_->Close(code);
}

}  // namespace longwire::link
