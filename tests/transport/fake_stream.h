// Two MessageStreams joined in memory, for tests of the pump: what one writes the other reads.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "link/transport/message_stream.h"

namespace longwire::transport {

class FakeStream final : public MessageStream {
 public:
  // Joins two; each may be cut off.
  static void Join(FakeStream& one, FakeStream& other) {
    auto shared = std::make_shared<Shared>();
    one.shared_ = other.shared_ = shared;
    one.mine_ = 0;
    other.mine_ = 1;
  }

  void Cut() {
    std::lock_guard lock(shared_->mutex);
    shared_->cut = true;
    shared_->changed.notify_all();
  }
  // Writes of this end stay under way until it is taken back.
  void HoldWrites(bool hold) {
    std::lock_guard lock(shared_->mutex);
    side().hold_writes = hold;
    shared_->changed.notify_all();
  }
  // Puts a frame into this end's inbox as if the far end had sent it.
  void Inject(const FrameHeader& header, const std::string& body) {
    std::lock_guard lock(shared_->mutex);
    side().inbox.push_back({header, body});
    shared_->changed.notify_all();
  }

  void StartRead() override {
    std::lock_guard lock(shared_->mutex);
    side().reading = true;
    shared_->changed.notify_all();
  }
  const ReceivedFrame& received() const override { return received_; }
  std::shared_ptr<const void> KeepReceived() override { return std::exchange(frame_, nullptr); }
  void StartWrite(const FrameHeader& header, std::span<const std::byte> bytes,
                  std::shared_ptr<void> keep) override {
    std::lock_guard lock(shared_->mutex);
    std::string body(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    shared_->sides[1 - mine_].inbox.push_back({header, std::move(body)});
    side().writing = true;
    shared_->changed.notify_all();
  }
  Event Wait(wire::Deadline deadline) override {
    std::unique_lock lock(shared_->mutex);
    Event event = Event::kNone;
    auto ready = [&] { return (event = Next()) != Event::kNone; };
    if (deadline == wire::Deadline::max()) {
      shared_->changed.wait(lock, ready);
    } else {
      shared_->changed.wait_until(lock, deadline, ready);
    }
    return event;
  }
  void Wake() override {
    std::lock_guard lock(shared_->mutex);
    side().woken = true;
    ++side().wakes;
    shared_->changed.notify_all();
  }
  // How often this end was woken.
  int wakes() {
    std::lock_guard lock(shared_->mutex);
    return side().wakes;
  }
  std::string End(bool cancel) override {
    Cut();
    return {};
  }

 private:
  struct Frame {
    FrameHeader header;
    std::string body;
  };
  struct Side {
    std::deque<Frame> inbox;
    bool reading = false;
    bool writing = false;
    bool hold_writes = false;
    bool woken = false;
    int wakes = 0;
  };
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool cut = false;
    Side sides[2];
  };

  Side& side() { return shared_->sides[mine_]; }

  Event Next() {
    Side& own = side();
    if (own.woken) {
      own.woken = false;
      return Event::kWoken;
    }
    if (own.writing && !own.hold_writes) {
      own.writing = false;
      if (!shared_->cut) return Event::kWritten;
      if (!own.reading) return Event::kBroken;  // else what the far end said last is still read
    }
    if (own.reading && !own.inbox.empty()) {
      own.reading = false;
      frame_ = std::make_shared<Frame>(std::move(own.inbox.front()));
      own.inbox.pop_front();
      received_.header = frame_->header;
      received_.bytes = frame_->body.size();
      received_.body.clear();
      // In two parts, as a network may cut it.
      auto bytes = std::as_bytes(std::span(frame_->body));
      size_t half = bytes.size() / 2;
      if (half != 0) received_.body.push_back(bytes.first(half));
      if (!bytes.empty()) received_.body.push_back(bytes.subspan(half));
      return Event::kRead;
    }
    // As a connection of gRPC's: the end of one is read, like its frames.
    return shared_->cut && own.reading ? Event::kBroken : Event::kNone;
  }

  std::shared_ptr<Shared> shared_;
  int mine_ = 0;
  std::shared_ptr<Frame> frame_;  // of received_, until somebody keeps it
  ReceivedFrame received_;
};

}  // namespace longwire::transport
