// Goes on with the session when its link has ended: the program keeps the session's rings and the
// page from which any link of this user can resume it (wire/resume.h).
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "client-shim/connect/link_place.h"
#include "wire/resume.h"
#include "wire/rings/ring.h"
#include "wire/rings/segment.h"

namespace longwire::shim {

class Takeover {
 public:
  // nullptr if the program may not make the page; then the session ends with its link.
  static std::unique_ptr<Takeover> Prepare(LinkPlace place);

  // The page, for the opening of the session.
  int page() const { return page_.get(); }
  // The session is open: `down` is the ring that says when it is over.
  void Opened(std::shared_ptr<wire::RingMemory> down) { down_ = std::move(down); }
  wire::Descriptor TakePage() { return std::move(page_); }

  // Finds a link, or starts one, and gives it the page and the rings, which are `descriptors` of
  // the calling thread. Tries until the server gives the session up. Invalid if the session is over
  // anyway, or with a sentence.
  wire::Descriptor Connect(std::span<const int> descriptors, std::string* sentence);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Answer { kTaken, kRefused, kNone };

  Takeover(LinkPlace place, wire::Descriptor page, std::unique_ptr<wire::SegmentMapping> memory)
      : place_(std::move(place)), page_(std::move(page)), memory_(std::move(memory)) {}
  const wire::ResumePage& shared() const {
    return *reinterpret_cast<const wire::ResumePage*>(memory_->data());
  }
  Clock::time_point Deadline() const;
  void Pause();
  static Answer Ask(const wire::Descriptor& socket, std::span<const int> descriptors,
                    std::string* sentence);

  const LinkPlace place_;
  wire::Descriptor page_;
  std::unique_ptr<wire::SegmentMapping> memory_;
  std::shared_ptr<wire::RingMemory> down_;
  Clock::time_point paused_at_;
  std::chrono::milliseconds pause_{0};
};

}  // namespace longwire::shim
