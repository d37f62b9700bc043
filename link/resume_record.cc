#include "link/resume_record.h"

#include <algorithm>
#include <cstring>

namespace longwire::link {
namespace {

static_assert(wire::kResumeTokenBytes == transport::kTokenBytes);

}  // namespace

std::unique_ptr<ResumeRecord> ResumeRecord::Map(const wire::Descriptor& page) {
  auto memory = wire::SegmentMapping::Map(page.get(), sizeof(wire::ResumePage));
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<ResumeRecord>(new ResumeRecord(std::move(memory)));
}

void ResumeRecord::Complete(uint64_t session, uint32_t lanes, const std::string& server) {
  if (server.size() >= page_.server.size()) return;  // then no other link goes on
  page_.session = session;
  page_.lanes = lanes;
  std::memcpy(page_.server.data(), server.c_str(), server.size() + 1);
  page_.magic.store(wire::ResumePage::kMagic, std::memory_order_release);
}

void ResumeRecord::Change(uint64_t session, uint32_t lanes, const std::string& server) {
  page_.magic.store(0);
  Complete(session, lanes, server);
}

bool ResumeRecord::Read(uint64_t* session, uint32_t* lanes, std::string* server) const {
  if (page_.magic.load(std::memory_order_acquire) != wire::ResumePage::kMagic) return false;
  *session = page_.session;
  *lanes = page_.lanes;
  *server = std::string(page_.server.data(), page_.server.size());
  server->resize(std::min(server->size(), server->find('\0')));
  return *lanes <= wire::kMaxLanes;
}

void ResumeRecord::RemoveNote() {
  if (note_ != nullptr) note_->Remove();
}

void ResumeRecord::SetGrace(std::chrono::milliseconds grace) {
  page_.resume_grace_milliseconds.store(static_cast<uint32_t>(grace.count()));
}

std::chrono::milliseconds ResumeRecord::grace() const {
  return std::chrono::milliseconds(page_.resume_grace_milliseconds.load());
}

void ResumeRecord::SetToken(uint32_t lane, const transport::Token& token) {
  wire::ResumePage::Lane& of = page_.lane[lane];
  uint32_t other = 1 - (of.token.load() & 1);
  of.tokens[other] = token;
  of.token.store(other, std::memory_order_release);
  if (lane == 0 && note_ != nullptr) note_->Write(token);
}

transport::Token ResumeRecord::token(uint32_t lane) const {
  const wire::ResumePage::Lane& of = page_.lane[lane];
  return of.tokens[of.token.load(std::memory_order_acquire) & 1];
}

void ResumeRecord::SetEpoch(uint32_t lane, uint32_t epoch) { page_.lane[lane].epoch.store(epoch); }

uint32_t ResumeRecord::epoch(uint32_t lane) const { return page_.lane[lane].epoch.load(); }

void ResumeRecord::SetLost(uint32_t lane, std::optional<Clock::time_point> when) {
  int64_t nanoseconds =
      !when
          ? 0
          : std::chrono::duration_cast<std::chrono::nanoseconds>(when->time_since_epoch()).count();
  page_.lane[lane].lost_at.store(nanoseconds);
}

std::optional<ResumeRecord::Clock::time_point> ResumeRecord::lost(uint32_t lane) const {
  int64_t nanoseconds = page_.lane[lane].lost_at.load();
  if (nanoseconds == 0) return std::nullopt;
  return Clock::time_point(std::chrono::nanoseconds(nanoseconds));
}

}  // namespace longwire::link
