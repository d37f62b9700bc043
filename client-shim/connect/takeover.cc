#include "client-shim/connect/takeover.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "wire/open.h"

namespace longwire::shim {
namespace {

constexpr std::chrono::seconds kStartTime{5};   // for a link to be there
constexpr std::chrono::seconds kAnswerTime{5};  // for its answer
// Links that end one after the other are started more and more slowly.
constexpr std::chrono::milliseconds kFirstPause{20};
constexpr std::chrono::milliseconds kLongestPause{1000};
constexpr std::chrono::seconds kQuiet{10};

// Beyond the limit the kernel would end the program (SIGXFSZ).
bool MayMake(size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

}  // namespace

std::unique_ptr<Takeover> Takeover::Prepare(LinkPlace place) {
  constexpr size_t kBytes = sizeof(wire::ResumePage);
  if (!MayMake(kBytes)) return nullptr;
  wire::Descriptor page = wire::MakeSegment("longwire-resume", kBytes);
  if (!page.valid()) return nullptr;
  auto memory = wire::SegmentMapping::Map(page.get(), kBytes);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<Takeover>(
      new Takeover(std::move(place), std::move(page), std::move(memory)));
}

// When the server gives the session up, as far as it is known here.
Takeover::Clock::time_point Takeover::Deadline() const {
  auto now = Clock::now();
  int64_t lost = shared().lane[0].lost_at.load();
  auto since = lost == 0 ? now : Clock::time_point(std::chrono::nanoseconds(lost));
  auto grace = std::chrono::milliseconds(shared().resume_grace_milliseconds.load());
  return std::max(std::min(since, now) + grace, now + kStartTime);
}

void Takeover::Pause() {
  auto now = Clock::now();
  pause_ = now - paused_at_ > kQuiet ? std::chrono::milliseconds(0)
                                     : std::clamp(2 * pause_, kFirstPause, kLongestPause);
  std::this_thread::sleep_for(pause_);
  paused_at_ = Clock::now();
}

Takeover::Answer Takeover::Ask(const wire::Descriptor& socket, std::span<const int> descriptors,
                               std::string* sentence) {
  wire::ResumeRequest request;
  request.lanes = static_cast<uint32_t>((descriptors.size() - 1) / 2 - 1);
  wire::Writer writer;
  request.Encode(writer);
  if (!wire::SendMessage(socket.get(), writer.span(), descriptors)) return Answer::kNone;
  auto message = wire::ReceiveMessage(socket.get(), kAnswerTime);
  if (!message) return Answer::kNone;
  wire::OpenReply reply;
  wire::Reader reader(message->bytes);
  if (reply.Decode(reader) == wire::WireResult::kOk && reply.code == 0) return Answer::kTaken;
  *sentence = reply.sentence;
  return Answer::kRefused;
}

wire::Descriptor Takeover::Connect(std::span<const int> descriptors, std::string* sentence) {
  const bool resumes = shared().magic.load(std::memory_order_acquire) == wire::ResumePage::kMagic &&
                       shared().resume_grace_milliseconds.load() != 0;
  if (down_->closed()) return {};
  if (!resumes) {
    *sentence = "longwire-link has ended";
    return {};
  }
  std::string reason = "it ends at once";
  for (auto deadline = Deadline(); Clock::now() < deadline;) {
    Pause();
    if (down_->closed()) return {};
    wire::Descriptor socket = ConnectToLink(place_, Clock::now() + kStartTime, &reason);
    if (!socket.valid()) continue;
    switch (Ask(socket, descriptors, &reason)) {
      case Answer::kTaken:
        return socket;
      case Answer::kRefused:
        deadline = {};
        break;
      case Answer::kNone:
        break;
    }
  }
  *sentence = "longwire-link has ended, and no other one goes on: " + reason;
  return {};
}

}  // namespace longwire::shim
