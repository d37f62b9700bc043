#include "link/link_session.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/reason.h"
#include "base/start_thread.h"
#include "link/alive_watch.h"
#include "link/pool_place.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "wire/view.h"

namespace longwire::link {
namespace {

using transport::Log;
using transport::LogLevel;

// For a server that says nothing: the program must not wait for long.
constexpr std::chrono::milliseconds kConnectPatience{3300};
constexpr std::chrono::milliseconds kAnswerPatience{4400};
// For a session: a server at which hundreds are opened at once may need longer until it says that
// it is alive.
constexpr std::chrono::milliseconds kOpenAnswerPatience{12'000};
// For one that is alive and starts a worker: it waits for that for a minute itself. The program
// waits for a little longer (client-shim/connect/open_session.cc).
constexpr std::chrono::seconds kOpeningPatience{65};
constexpr int kOpenAttempts = 3;
constexpr std::chrono::seconds kRequestPatience{5};

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
  } else if (wire::IsSuspensionRequest(message->bytes)) {
    AnswerSuspension(*message);
  } else if (wire::IsResumeRequest(message->bytes)) {
    if (Resume(*message)) Relay();
  } else if (Open(*message)) {
    Relay();
  }
  if (server_.channel != nullptr) servers_.GiveBack(std::move(server_));
  // Outside the lock: attempts that are cancelled still take it.
  std::unique_ptr<ServerRace> race;
  {
    base::MutexLock lock(mutex_);
    race = std::move(race_);
  }
}

void LinkSession::Reject(const std::string& sentence) {
  auto message = wire::ReceiveMessage(socket_.get(), std::chrono::milliseconds(0));
  if (message && wire::IsViewRequest(message->bytes)) return RefuseView(sentence);
  Refuse(transport::kOutOfMemory, sentence);
}

void LinkSession::ProgramGone() {
  base::MutexLock lock(mutex_);
  if (gone_) return;
  gone_ = true;
  if (race_ != nullptr) race_->GiveUp();
  if (!open_) return;
  for (auto& lane : lanes_) lane->Stop({});
}

void LinkSession::Refuse(int32_t code, const std::string& sentence, uint64_t wait) {
  Log(LogLevel::kWarning, sentence);
  wire::OpenReply reply;
  reply.code = code;
  reply.sentence = sentence;
  reply.wait = wait;
  wire::Writer writer;
  reply.Encode(writer);
  wire::SendMessage(socket_.get(), writer.span());
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

std::optional<size_t> LinkSession::FirstOf(ServerRace::Try attempt,
                                           std::chrono::milliseconds answer,
                                           std::string* sentence) {
  *sentence = servers_.problem();
  if (!sentence->empty()) return std::nullopt;
  auto made = std::make_unique<ServerRace>(servers_.Order(), std::move(attempt), answer);
  ServerRace& race = *made;
  {
    base::MutexLock lock(mutex_);
    if (gone_) return std::nullopt;
    race_ = std::move(made);
  }
  return race.Run(began_ + kAnswerPatience, sentence);
}

void LinkSession::AnswerView(const wire::Message& message) {
  auto ask = [this, &message](size_t place, Contender& contender, std::string* sentence) {
    Asked& asked = AskedOf(place);
    if (!Reach(contender, &asked, sentence)) return false;
    transport::InspectRequest request;
    request.set_client_version(LONGWIRE_VERSION);
    request.set_view(message.bytes.data(), message.bytes.size());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kAnswerPatience);
    contender.set_on_give_up([&context] { context.TryCancel(); });
    grpc::Status status = transport::Transport::NewStub(asked.channel.channel)
                              ->Inspect(&context, request, &asked.view);
    contender.set_on_give_up(nullptr);
    const std::string& server = asked.channel.server;
    if (!status.ok()) {
      *sentence = ExplainStatus(server, status);
    } else if (asked.view.view().empty()) {
      *sentence = server + " is older than this Longwire: upgrade longwired there";
    }
    return sentence->empty();
  };
  std::string sentence;
  auto first = FirstOf(ask, kAnswerPatience, &sentence);
  if (!first) return RefuseView(sentence);
  Asked& asked = AskedOf(*first);
  server_ = std::move(asked.channel);
  wire::SendMessage(socket_.get(), BytesOf(asked.view.view()));
}

LinkSession::Asked& LinkSession::AskedOf(size_t place) {
  base::MutexLock lock(mutex_);
  return asked_[place];
}

bool LinkSession::Reach(Contender& contender, Asked* asked, std::string* sentence) {
  auto channel = servers_.Reach(contender.address(), began_ + kConnectPatience,
                                contender.given_up(), sentence);
  if (!channel) return false;
  asked->channel = *std::move(channel);
  contender.Connected();
  return true;
}

// Reads the sentence of a server that refuses or has another version; empty if the session is open.
void LinkSession::TakeAnswer(bool refused, Asked* asked, std::string* sentence) {
  const wire::OpenReply& reply = asked->reply;
  *sentence = wire::ProblemOfAnswer(refused, reply.protocol, reply.versions);
  if (!sentence->empty()) {
    asked->code = transport::kSystemDriverMismatch;
  } else if (refused) {
    if (reply.code != 0) asked->code = reply.code;
    asked->wait = reply.wait;
    *sentence = reply.sentence;
  }
}

// UNAVAILABLE with a sentence when there is no connection to `server`.
grpc::Status LinkSession::CallOpen(const transport::Address& server,
                                   const transport::OpenSessionRequest& request,
                                   Contender& contender, Asked* asked, std::string* sentence) {
  grpc::Status status;
  for (int attempt = 0; attempt < kOpenAttempts && !contender.given_up(); ++attempt) {
    sentence->clear();
    auto channel =
        servers_.Reach(server, began_ + kConnectPatience, contender.given_up(), sentence);
    if (!channel) return {grpc::StatusCode::UNAVAILABLE, *sentence};
    asked->channel = *std::move(channel);
    contender.Connected();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kOpeningPatience);
    contender.set_on_give_up([&context] { context.TryCancel(); });
    auto stub = transport::Transport::NewStub(asked->channel.channel);
    asked->opened.Clear();
    AliveWatch watch(asked->channel.channel, [&contender] { contender.Alive(); });
    status = stub->Open(&context, request, &asked->opened);
    contender.set_on_give_up(nullptr);
    // The connection broke. A session that was opened is dropped by the server, as no link attaches
    // to it. The same happens when another server was faster.
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) break;
  }
  return status;
}

bool LinkSession::AskToOpen(const transport::OpenSessionRequest& request, Contender& contender,
                            Asked* asked, std::string* sentence) {
  grpc::Status status = CallOpen(contender.address(), request, contender, asked, sentence);
  if (status.ok()) status = GoToPlace(request, contender, asked, sentence);
  if (!sentence->empty()) return false;
  if (status.ok() && !asked->places.places.empty()) return true;
  const transport::OpenSessionReply& answer = asked->opened;
  wire::Reader reader(BytesOf(answer.reply()));
  if (!status.ok()) {
    *sentence = ExplainStatus(asked->channel.server, status);
  } else if (asked->reply.Decode(reader) != wire::WireResult::kOk ||
             (answer.session() != 0 && !TokensFit(answer, asked->reply))) {
    *sentence = asked->channel.server + " answered with something this version does not understand";
  } else {
    TakeAnswer(answer.session() == 0, asked, sentence);
    return sentence->empty() && answer.session() != 0;
  }
  return sentence->empty();
}

// The code of the first server that gave a reason of its own.
int32_t LinkSession::CodeOfRefusal() {
  base::MutexLock lock(mutex_);
  for (const auto& [place, asked] : asked_) {
    if (asked.code.load() != transport::kNoDevice) return asked.code.load();
  }
  return transport::kNoDevice;
}

// The longest that a server allows: it may be the one with room next.
uint64_t LinkSession::WaitOfRefusal() {
  base::MutexLock lock(mutex_);
  uint64_t longest = 0;
  for (const auto& [place, asked] : asked_) longest = std::max(longest, asked.wait.load());
  return longest;
}

// True if program and link share a version; else the program is refused. The server refuses
// requests that cannot be decoded.
bool LinkSession::Understands(const wire::Message& message) {
  wire::OpenRequest program;
  wire::Reader reader(message.bytes);
  const wire::VersionRange ours = wire::SpokenVersions();
  if (program.Decode(reader) != wire::WireResult::kOk) return true;
  if (wire::NewestCommon(program.versions, ours) != 0) return true;
  Refuse(transport::kSystemDriverMismatch,
         wire::RefusalOf({"the client", wire::kUpgradeClient, program.versions},
                         {"longwire-link on its host", wire::kUpgradeClient, ours}));
  return false;
}

// There is no session here.
bool LinkSession::TellPlaces(const wire::PlaceList& places) {
  wire::Writer writer;
  places.Encode(writer);
  wire::SendMessage(socket_.get(), writer.span());
  return false;
}

bool LinkSession::Open(wire::Message& message) {
  if (!Understands(message)) return false;
  auto program = wire::PeerCredentials(socket_.get());
  if (program) leftovers_.EndAll(servers_, program->pid);
  if (!message.descriptors.empty()) record_ = ResumeRecord::Map(message.descriptors.front());
  // Also used by attempts that are running when another server has answered.
  auto request = std::make_shared<transport::OpenSessionRequest>();
  request->set_request(message.bytes.data(), message.bytes.size());
  request->set_client_version(LONGWIRE_VERSION);
  request->set_oldest_protocol(wire::SpokenVersions().oldest);
  request->set_newest_protocol(wire::SpokenVersions().newest);
  AskForPlace(message.bytes, request.get());
  auto ask = [this, request](size_t place, Contender& contender, std::string* sentence) {
    Asked& asked = AskedOf(place);
    if (AskToOpen(*request, contender, &asked, sentence)) return true;
    // The prefix of a refusal by one of several servers.
    bool named = sentence->find(contender.address().Text()) != std::string::npos;
    if (!named && servers_.count() > 1) *sentence = asked.channel.server + ": " + *sentence;
    return false;
  };
  std::string sentence;
  auto first = FirstOf(ask, kOpenAnswerPatience, &sentence);
  if (!first) {
    Refuse(CodeOfRefusal(), sentence, WaitOfRefusal());
    return false;
  }
  Asked& asked = AskedOf(*first);
  server_ = std::move(asked.channel);
  if (!asked.places.places.empty()) return TellPlaces(asked.places);
  session_ = asked.opened.session();
  if (!MakeLanes(asked.opened, asked.reply)) {
    sentence = "longwire-link has no room for a session's rings: " + base::Reason(errno);
    Refuse(transport::kOutOfMemory, sentence);
    return false;
  }
  SetWhereabouts(server_);
  // First: a program that has its rings may use its lanes.
  if (!StartLanes(&sentence)) {
    Refuse(transport::kOutOfMemory, sentence);
  } else if (ReplyToProgram(std::move(asked.reply))) {
    return true;
  }
  JoinLanes({});
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
    lanes_.back()->SetRecord(record_.get());
    if (record_ != nullptr) record_->SetToken(number, right.token);
    if (!lanes_.back()->CreateRings(number == 0 ? wire::kRingBytes : wire::kLaneRingBytes)) {
      return false;
    }
  }
  if (record_ == nullptr) return true;
  record_->SetGrace(std::chrono::milliseconds(answer.resume_grace_milliseconds()));
  record_->Complete(session_, reply.lanes, server_.server);
  NoteSession(record_->token(0));
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
  bool gone = false;
  {
    base::MutexLock lock(mutex_);
    gone = gone_;
    open_ = true;
  }
  Log(LogLevel::kInfo, session_, "opened at " + log.server().server);
  // A server that heard nothing would keep the session for the whole grace.
  if (gone || !wire::SendMessage(socket_.get(), writer.span(), rings)) log.Stop({});
  return true;
}

// An unused lane costs a sleeping thread and no connection.
void LinkSession::RelayLane(Lane& lane) {
  if (!lane.WaitForBytes()) return;
  lane.SetServer(whereabouts_.Connect());
  // Bytes that a lane has lost are not sent again: the session cannot go on.
  if (!lane.Relay()) lanes_[0]->Stop(lane.closed());
}

bool LinkSession::StartLanes(std::string* sentence) {
  for (size_t i = 1; i < lanes_.size(); ++i) {
    auto relay = [this, lane = lanes_[i].get()] { RelayLane(*lane); };
    if (base::StartThread(&lane_threads_.emplace_back(), relay)) continue;
    lane_threads_.pop_back();
    *sentence = "longwire-link cannot relay a session: " + base::ReasonOfNoThread(errno);
    return false;
  }
  return true;
}

void LinkSession::JoinLanes(const transport::Closed& closed) {
  for (size_t i = 1; i < lanes_.size(); ++i) lanes_[i]->Stop(closed);
  for (std::thread& thread : lane_threads_) thread.join();
}

void LinkSession::Relay() {
  Lane& log = *lanes_[0];
  // One that the server could not be notified of stays noted, for the next link.
  bool told = log.Relay();
  if (told && record_ != nullptr) record_->RemoveNote();
  EndForProgram();
  JoinLanes(log.closed());
  for (auto& lane : lanes_) {
    if (lane->server().channel != nullptr) servers_.GiveBack(std::move(lane->server()));
  }
}

void LinkSession::EndForProgram() {
  const transport::Closed& closed = lanes_[0]->closed();
  const std::string& sentence = closed.sentence;
  Log(LogLevel::kInfo, session_,
      "ended, code " + std::to_string(closed.code) + (sentence.empty() ? "" : ": " + sentence));
  // The rings carry only the code; the program can print this sentence.
  if (!sentence.empty()) wire::SendMessage(socket_.get(), BytesOf(sentence));
  for (auto& lane : lanes_) lane->CloseRings(closed.code);
}

}  // namespace longwire::link
