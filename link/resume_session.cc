// A program whose link has ended goes on with its session here.
#include <algorithm>

#include "link/link_session.h"
#include "link/transport/log.h"
#include "wire/resume.h"

namespace longwire::link {
namespace {

using transport::Log;
using transport::LogLevel;

}  // namespace

bool LinkSession::AdoptLanes(wire::Message& message, uint32_t lanes) {
  for (uint32_t number = 0; number <= lanes; ++number) {
    wire::Descriptor& up = message.descriptors[1 + 2 * number];
    wire::Descriptor& down = message.descriptors[2 + 2 * number];
    Lane::Right right;
    right.session = session_;
    right.token = record_->token(number);
    right.resume_grace = record_->grace();
    lanes_.push_back(std::make_unique<Lane>(number));
    lanes_.back()->SetRight(right);
    lanes_.back()->SetRecord(record_.get());
    if (!lanes_.back()->AdoptRings(std::move(up), std::move(down))) return false;
  }
  return true;
}

void LinkSession::NoteSession(const transport::Token& token) {
  const std::string& server = lanes_[0]->server().server;
  auto program = wire::PeerCredentials(socket_.get());
  if (!program) return;
  record_->SetNote(
      leftovers_.Note(program->pid, server.empty() ? server_.server : server, session_, token));
}

void LinkSession::SetWhereabouts(const ServerChannel& server) {
  const auto program = wire::PeerCredentials(socket_.get());
  whereabouts_.Begin(session_, server, program ? program->pid : 0);
  const auto lanes = static_cast<uint32_t>(lanes_.size() - 1);
  for (auto& lane : lanes_) {
    // The session's own logs are relayed by the thread that uses the record.
    if (lane == lanes_.front()) {
      lane->SetWhereabouts(&whereabouts_, [this, lanes] { FollowSession(lanes); });
    } else {
      lane->SetWhereabouts(&whereabouts_);
    }
  }
}

// It has moved to another server, where another link would have to go on with it.
void LinkSession::FollowSession(uint32_t lanes) {
  const Whereabouts::Place place = whereabouts_.Get();
  session_ = place.session;
  if (record_ == nullptr) return;
  record_->RemoveNote();
  record_->Change(session_, lanes, place.server);
  NoteSession(record_->token(0));
}

bool LinkSession::Resume(wire::Message& message) {
  constexpr int32_t kOver = transport::kLaunchFailed;
  wire::ResumeRequest request;
  wire::Reader reader(message.bytes);
  if (request.Decode(reader) != wire::WireResult::kOk) return false;
  uint32_t lanes = 0;
  std::string server, sentence;
  const size_t descriptors = 1 + 2 * (size_t{1} + request.lanes);
  bool whole = message.descriptors.size() == descriptors;
  if (whole) record_ = ResumeRecord::Map(message.descriptors.front());
  if (record_ == nullptr || !record_->Read(&session_, &lanes, &server) || lanes != request.lanes ||
      !AdoptLanes(message, lanes)) {
    Refuse(kOver, "another longwire-link cannot go on with the session: its memory is not right");
    return false;
  }
  auto channel = servers_.To(server, &sentence);
  if (!channel) {
    Refuse(kOver, sentence);
    return false;
  }
  SetWhereabouts(*channel);
  lanes_[0]->SetServer(std::move(*channel));
  NoteSession(record_->token(0));
  if (!StartLanes(&sentence)) {
    Refuse(kOver, sentence);
    JoinLanes({});
    return false;
  }
  bool gone = false;
  {
    base::MutexLock lock(mutex_);
    open_ = true;
    gone = gone_;
  }
  // The server learns that nobody will come back.
  if (gone) {
    for (auto& lane : lanes_) lane->Stop({});
  }
  Log(LogLevel::kInfo, session_, "taken over from another longwire-link, at " + server);
  wire::Writer writer;
  wire::OpenReply().Encode(writer);
  wire::SendMessage(socket_.get(), writer.span());
  return true;
}

}  // namespace longwire::link
