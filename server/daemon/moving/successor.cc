#include "server/daemon/moving/successor.h"

#include <sys/socket.h>

namespace longwire::daemon {
namespace {

// What was said, or else what is so.
std::string SaidOr(const std::string& said, const std::string& what, int32_t code) {
  return said.empty() ? what + " (error " + std::to_string(code) + ")" : said;
}

}  // namespace

SessionTable::Successor::~Successor() {
  packets_ = {};
  if (session_ != nullptr && !kept_) table_.Abandon(session_->id());
}

bool SessionTable::Successor::Start(const std::string& request, const Peer& peer,
                                    PlacedSession* placed, wire::Descriptor stream,
                                    std::string* sentence) {
  auto bytes = std::as_bytes(std::span(request));
  wire::OpenRequest opening;
  wire::Reader reader(bytes);
  *sentence = "its worker's answer cannot be read";
  if (opening.Decode(reader) != wire::WireResult::kOk) return false;
  OpeningRefusal refusal;
  session_ = table_.StartSession(opening, peer, true, placed, &refusal);
  *sentence = SaidOr(refusal.sentence, "no worker can be started for it", refusal.code);
  if (session_ == nullptr) return false;
  Pair packets;
  *sentence = "longwired has no sockets left";
  if (!MakePair(SOCK_SEQPACKET, &packets)) return false;
  packets_ = std::move(packets.ours);
  const int given[] = {packets.theirs.get(), stream.get()};
  wire::Descriptor control = session_->ControlSocket();
  *sentence = "its new worker takes no messages";
  bool told = wire::SendMessage(control.get(), message::Pack(moving::MoveIn{}), given);
  stream = {};
  if (!told) return false;
  std::atomic<bool> cancelled{false};
  wire::OpenReply reply;
  if (!session_->Introduce(bytes, cancelled, &reply, sentence)) return false;
  *sentence = SaidOr(reply.sentence, "its new worker cannot open it", reply.code);
  return reply.code == 0;
}

bool SessionTable::Successor::IsAhead(std::string* sentence) {
  std::string there;
  if (HearWorker(packets_.get(), kCopyPatience, &there) == 0) {
    ++rounds_;
    return true;
  }
  again_ = rounds_ != 0;
  *sentence = "it cannot be rebuilt on that device: " + there;
  return false;
}

bool SessionTable::Successor::IsRebuilt(std::string* sentence) {
  if (rounds_ != 0 && !IsAhead(sentence)) return false;  // the calls since the last round
  std::string there;
  if (HearWorker(packets_.get(), kCopyPatience, &there) == 0) return true;
  *sentence = "it cannot be rebuilt on that device: " + there;
  return false;
}

bool SessionTable::Successor::Go() {
  kept_ = true;
  return wire::SendMessage(packets_.get(), message::Pack(moving::MoveGo{}));
}

}  // namespace longwire::daemon
