// The answer to GetInfo in memory that a keeper shares with one worker: it keeps it up to date, and
// the worker sends no message to know what is free. The first Info carries its descriptor.
//
// Each worker has a page of its own, with what Info says and nothing else. The memory is sealed:
// after the keeper nobody can map it for writing, write to it, or change its size.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "server/protocol/keeper.h"
#include "wire/socket.h"

namespace longwire::keeper {

inline constexpr uint32_t kInfoPageSince = 14;  // version of the worker

using InfoTime = std::chrono::steady_clock::time_point;  // of one host: all processes have the same

// The keeper's end.
class InfoPage {
 public:
  // nullptr on failure: the kernel may be too old for the seal.
  static std::unique_ptr<InfoPage> Create();
  // What it says counts no longer.
  ~InfoPage();
  InfoPage(const InfoPage&) = delete;
  InfoPage& operator=(const InfoPage&) = delete;

  // It counts until then; InfoTime::max(): until it is written again.
  void Write(const Info& info, InfoTime until);
  int descriptor() const { return memory_.get(); }

 private:
  InfoPage() = default;
  wire::Descriptor memory_;
  struct InfoPageContent* content_ = nullptr;
};

// The worker's end.
class InfoView {
 public:
  // nullptr if the descriptor is no such page.
  static std::unique_ptr<InfoView> Map(const wire::Descriptor& memory);
  ~InfoView();
  InfoView(const InfoView&) = delete;
  InfoView& operator=(const InfoView&) = delete;

  // False if what it says does not count now; *info is then unchanged.
  bool Read(Info* info, InfoTime now) const;

 private:
  InfoView() = default;
  const struct InfoPageContent* content_ = nullptr;
};

}  // namespace longwire::keeper
