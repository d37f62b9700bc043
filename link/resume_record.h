// The page from which another link goes on with a session (wire/resume.h), as this link writes it.
// The program shares it and is not trusted: what is read is copied once and checked.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "link/leftovers.h"
#include "link/transport/frame.h"
#include "wire/resume.h"
#include "wire/rings/segment.h"

namespace longwire::link {

class ResumeRecord {
 public:
  using Clock = std::chrono::steady_clock;

  // nullptr if the descriptor is not such a page.
  static std::unique_ptr<ResumeRecord> Map(const wire::Descriptor& page);

  // Makes the page valid; the lanes' tokens are there.
  void Complete(uint64_t session, uint32_t lanes, const std::string& server);
  // The session has moved. A link that ends meanwhile leaves no valid page.
  void Change(uint64_t session, uint32_t lanes, const std::string& server);
  // What a former link has written. False if it had not completed the page.
  bool Read(uint64_t* session, uint32_t* lanes, std::string* server) const;

  // The session's file, which follows its token.
  void SetNote(std::unique_ptr<LeftoverNote> note) { note_ = std::move(note); }
  void RemoveNote();

  void SetGrace(std::chrono::milliseconds grace);
  std::chrono::milliseconds grace() const;

  void SetToken(uint32_t lane, const transport::Token& token);
  transport::Token token(uint32_t lane) const;
  void SetEpoch(uint32_t lane, uint32_t epoch);
  uint32_t epoch(uint32_t lane) const;
  // nullopt while the lane has a connection.
  void SetLost(uint32_t lane, std::optional<Clock::time_point> when);
  std::optional<Clock::time_point> lost(uint32_t lane) const;

 private:
  explicit ResumeRecord(std::unique_ptr<wire::SegmentMapping> memory)
      : memory_(std::move(memory)), page_(*reinterpret_cast<wire::ResumePage*>(memory_->data())) {}

  std::unique_ptr<wire::SegmentMapping> memory_;
  wire::ResumePage& page_;
  std::unique_ptr<LeftoverNote> note_;
};

}  // namespace longwire::link
