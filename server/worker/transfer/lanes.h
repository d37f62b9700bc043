// The session's lanes in the worker (wire/lane.h). Their threads store arriving pieces of copies,
// and send pieces to the client. The log thread only issues copies between pinned memory and the
// device.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/transfer/bridge_figures.h"
#include "server/worker/transfer/staging.h"
#include "wire/lane.h"
#include "wire/open.h"
#include "wire/rings/pieces.h"
#include "wire/rings/ring.h"

namespace longwire::worker {

class CurrentContext;
class Failures;
class HostSegment;
class StreamStaging;
class Transfers;
struct Stream;

class Lanes {
 public:
  struct Uses {
    Failures& failures;
    CurrentContext& current_context;
    HostSegment& host_segment;
    Transfers& transfers;
    StreamStaging& staging;
    BridgeFigures& figures;
    wire::RingMemory& up;  // the log thread waits for it
  };
  explicit Lanes(Uses uses) : uses_(uses) {}
  ~Lanes() { Stop(); }

  // Creates the rings for the lanes that the client requests, or for fewer. Called before Start.
  void Create(const wire::OpenRequest& request);
  // The rings have another worker's positions. Before Start.
  void Reopen();
  void Start();
  // Closes the rings and waits for the threads.
  void Stop();
  // Closes the rings: the threads end.
  void Close();

  // True if all that came was taken, and nothing is to be sent.
  bool IsIdle();

  // All of them. The client's come first, then those of bridge 1, and so on (wire/open.h).
  uint32_t count() const { return static_cast<uint32_t>(lanes_.size()); }
  uint32_t bridges() const { return bridges_; }
  // The lanes of a bridge; of bridge 0, the client's.
  uint32_t CountOf(uint32_t bridge) const { return bridge == 0 ? own_ : per_bridge_; }
  uint32_t FirstOf(uint32_t bridge) const {
    return bridge == 0 ? 0 : own_ + (bridge - 1) * per_bridge_;
  }
  // Nothing is sent over the bridge any more, and what comes is not waited for.
  void EndBridge(uint32_t bridge);
  bool HasEnded(uint32_t bridge) const { return groups_[bridge].ended; }
  // Whether bytes that come over bridges wait in their lanes until there is pinned memory for them.
  // They need none of the client's window then, and no credit. Else they are as the client's.
  // An OpenReply::bridges_hold_back; the client has a choice if it has said which.
  uint32_t HowHeldBack() const {
    if (!has_choice_) return 0;
    return hold_back_ ? wire::OpenReply::kHeldBack : wire::OpenReply::kCredited;
  }
  // A copy over a bridge may take bytes, or memory for some has become free. Any thread.
  void WakeBridges();
  // For each lane, in order: its up ring, then its down ring.
  std::vector<int> descriptors() const;

  // True if copies of this size use the lanes; and the size of their pieces.
  bool Carries(uint64_t bytes) const { return own_ != 0 && bytes >= copy_bytes_; }
  uint64_t PieceOf(uint64_t bytes, uint32_t bridge = 0) const;
  // How many bytes of such a copy the log may carry beside them, by its backlog.
  uint64_t InLog(uint64_t bytes, uint64_t backlog) const {
    return relayed_ ? wire::LogShare(bytes, backlog) : 0;
  }

  // Sends a part of a download, which is in a staging block of the stream. The block is freed when
  // the part has been sent.
  struct Part {
    uint64_t transfer = 0;
    uint64_t offset = 0;
    size_t bytes = 0;
    StagingBlock block;
    std::shared_ptr<Stream> stream;
    uint32_t bridge = 0;                    // 0: to the client
    BridgeFigures::Clock::time_point at{};  // when it was ready to be sent
  };
  void Send(Part part);

 private:
  // The lanes of a bridge, or the client's.
  struct Group {
    std::deque<Part> parts;  // guarded by mutex_
    base::CondVar changed;
    std::atomic<bool> ended{false};
  };
  struct Lane {
    Group* group = nullptr;
    std::shared_ptr<wire::RingMemory> up, down;
    uint64_t poked_at = 0;  // position; of the reader
    // The reader waits with the next piece (Transfers::Land), since then; else no time.
    std::atomic<bool> stuck{false};
    BridgeFigures::Clock::time_point stuck_at{};
    base::Mutex mutex;
    std::optional<wire::RingProducer> log LONGWIRE_GUARDED_BY(mutex);  // of down
    std::thread reader, sender;
  };
  // How many lanes are the client's, and how many each bridge's.
  void Divide(const std::vector<std::string>& environment, uint32_t wanted);
  void Read(Lane& lane);
  // False if the records violate the protocol, also those of the other functions.
  bool TakePiece(const Lane& lane, const wire::LaneHeader& header, std::span<const std::byte> data);
  // The same for a lane of a bridge that holds back; *waits is set if the piece stays in the ring.
  bool TakeOrWait(Lane& lane, const wire::LaneHeader& header, std::span<const std::byte> data,
                  bool* waits);
  bool ReadRecords(Lane& lane, wire::RingConsumer& log);
  void SendParts(Lane& lane);
  // False if the lane is closed.
  bool SendPart(Lane& lane, const Part& part);

  Uses uses_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  uint64_t copy_bytes_ = 0;
  bool relayed_ = false;  // the client is at another host; else its lanes are the shortest way
  uint64_t chunk_bytes_ = 0;

  uint32_t own_ = 0;  // the client's
  uint32_t bridges_ = 0;
  uint32_t per_bridge_ = 0;
  bool hold_back_ = false;
  bool has_choice_ = false;
  std::deque<Group> groups_;  // by bridge; constant after Create

  base::Mutex mutex_{base::ranks::kWorkerLanes};
  size_t sending_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // parts
  bool closed_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::worker
