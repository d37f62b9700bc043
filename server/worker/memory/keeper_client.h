// The worker's connection to a device's keeper: leases of physical memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "server/protocol/info_page.h"
#include "server/protocol/keeper.h"
#include "wire/socket.h"
#include "wire/versions.h"

namespace longwire::worker {

using SharedToken = std::array<uint64_t, 2>;

// Calls wait for the keeper's reply, so the log thread may only call Return. A keeper that ends has
// a successor behind the same socket (reattaching.cc): such a wait ends a little later.
class KeeperClient {
 public:
  using OnReclaim = std::function<void(const keeper::Reclaim&)>;
  // SwapOut, SwapReturned and SwapWatch; Reattach, after it was answered.
  using OnSwap = std::function<void(wire::Message)>;

  explicit KeeperClient(int socket) : socket_(socket) {}
  ~KeeperClient() { StopListening(); }

  // Exchanges the versions that this worker and the keeper speak, before the first lease. A
  // CUresult, with a sentence if they have none in common.
  int Greet(std::string* sentence);

  // Receives the keeper's own requests from now on, on a thread of its own and on threads that wait
  // for a reply. The callbacks must not wait. `gone` is called when there is no keeper any more.
  void Listen(OnReclaim reclaim, OnSwap swap = {}, std::function<void()> gone = {});
  void StopListening();

  struct Chunk {
    uint64_t id = 0;
    uint64_t bytes = 0;
    wire::Descriptor memory;
  };
  // Leases all of the chunks or none. Returns a CUresult. With `spare`, no memory is reclaimed from
  // other sessions for it.
  int Lease(const std::vector<uint64_t>& bytes, bool spare, std::vector<Chunk>* chunks,
            std::string* sentence);
  // Returns a token with which other workers of the tenant can borrow the chunks.
  int Share(const std::vector<uint64_t>& chunks, SharedToken* token, std::string* sentence);
  int Borrow(const SharedToken& token, std::vector<Chunk>* chunks, std::string* sentence);
  // For a session that moves (memory_filling.cc). The descriptor of a chunk that it has, again.
  int Show(uint64_t chunk, wire::Descriptor* file);
  // Copies another device's chunk of the same size into one that it has: begins, and waits for the
  // end, which each begun one needs. What the chunk holds is known only if that answers 0;
  // kDeviceUnavailable: the copy may still be under way.
  int StartFill(uint64_t chunk, const wire::Descriptor& from, uint64_t* request);
  int EndFill(uint64_t request);
  int Info(keeper::Info* info);
  // The same from the keeper's page, without waiting (known_info.cc). False: the keeper has to be
  // asked, as after something was said to it that it does not answer.
  bool KnownInfo(keeper::Info* info) const;
  // The keepers of the session's other devices: they charge the same tenant.
  void SetOthers(std::vector<const KeeperClient*> others) { others_ = std::move(others); }
  // Charges memory that the driver is about to allocate in this process: *charged is at least
  // `bytes`, and at most `most`. Nothing is charged where the keeper cannot: it is of an older
  // version or has ended.
  int Charge(uint64_t bytes, uint64_t most, uint64_t* charged, std::string* sentence);
  // These do not wait, also while another thread waits for a reply.
  void Return(const std::vector<uint64_t>& chunks);
  void Reclaimed(const keeper::Reclaimed& answer);
  template <class M>
  void Tell(const M& message) {
    Send(message);
  }
  // Not sent if it would have to wait.
  template <class M>
  void TellIfThereIsRoom(const M& message) {
    SendNow(message::Pack(message));
  }
  void Uncharge(uint64_t bytes);
  bool charges() const { return charges_; }
  // For log messages.
  void Note(keeper::MemoryEventKind kind, uint64_t bytes);

 private:
  template <class M>
  bool Send(const M& message) {
    return socket_.valid() && wire::SendMessage(socket_.get(), message::Pack(message));
  }
  // Sends a request whose answer is waited for, until Answered.
  template <class M>
  bool Ask(const M& message) LONGWIRE_REQUIRES(mutex_) {
    unanswered_ = message::Pack(message);
    return socket_.valid() && wire::SendMessage(socket_.get(), unanswered_);
  }
  int Answered(int code) LONGWIRE_REQUIRES(mutex_) {
    unanswered_.clear();
    return code;
  }
  void SendNow(const std::vector<std::byte>& packet);
  // What this worker has of the keeper's memory.
  void Hold(const std::vector<Chunk>& chunks);
  void LetGo(const std::vector<uint64_t>& chunks) LONGWIRE_REQUIRES(held_mutex_);
  void HoldShare(const SharedToken& token, std::vector<uint64_t> chunks,
                 std::vector<wire::Descriptor> files);
  void HoldBorrowed(const SharedToken& token, const std::vector<Chunk>& chunks);
  void SendHeld(const keeper::Reattach& ask);
  void TakeReattach(const wire::Message& packet) LONGWIRE_REQUIRES(mutex_);
  // Waits up to the timeout for the keeper's next packet that is not a request of its own.
  std::optional<wire::Message> Hear(std::chrono::milliseconds patience, bool* closed = nullptr)
      LONGWIRE_REQUIRES(mutex_);
  void ListenLoop();
  // True if the packet is a request of the keeper's own; it is then handled.
  bool TakeQuestion(wire::Message& packet) LONGWIRE_REQUIRES(mutex_);
  // The keeper's versions, from its reply to a Hello; nullopt if it does not reply.
  std::optional<wire::VersionRange> HearHello(uint64_t request) LONGWIRE_REQUIRES(mutex_);
  // Handles the reply to a request for chunks.
  int Receive(uint64_t request, std::vector<Chunk>* chunks, std::string* sentence)
      LONGWIRE_REQUIRES(mutex_);

  // The replies to the single requests.
  int HearShared(const keeper::Share& share, SharedToken* token, std::string* sentence)
      LONGWIRE_REQUIRES(mutex_);
  int HearInfo(uint64_t request, uint64_t changes, keeper::Info* info) LONGWIRE_REQUIRES(mutex_);
  int HearCharged(const keeper::Charge& charge, uint64_t* charged, std::string* sentence)
      LONGWIRE_REQUIRES(mutex_);

  wire::Descriptor socket_;
  base::Mutex mutex_;  // held by the thread that waits for a reply
  bool IsGone() const;
  static int Gone(std::string* sentence);
  int InfoOfGone(keeper::Info* info) const LONGWIRE_REQUIRES(mutex_);
  uint64_t Changes() const;
  uint64_t ChangesSaid();
  void TakePage(const wire::Message& packet, uint64_t changes) LONGWIRE_REQUIRES(mutex_);
  void DropPage() { view_ = nullptr; }

  uint64_t next_request_ LONGWIRE_GUARDED_BY(mutex_) = 1;
  std::atomic<bool> charges_{false};  // the keeper is new enough
  // The version spoken with the keeper.
  uint32_t version_ LONGWIRE_GUARDED_BY(mutex_) = wire::kLastWithoutRange;
  // Requests that came before Listen.
  std::vector<wire::Message> early_ LONGWIRE_GUARDED_BY(mutex_);
  keeper::Info last_info_ LONGWIRE_GUARDED_BY(mutex_);
  // Read by threads that must not wait, so a view stays until the end; each keeper has one.
  std::vector<std::unique_ptr<keeper::InfoView>> views_ LONGWIRE_GUARDED_BY(mutex_);
  std::atomic<const keeper::InfoView*> view_{nullptr};
  std::atomic<uint64_t> said_{0};   // changes that the keeper gets without an answer
  std::atomic<uint64_t> had_{0};    // changes that it answered
  std::atomic<uint64_t> known_{0};  // Changes() of which the view knows
  std::vector<const KeeperClient*> others_;
  std::vector<std::byte> unanswered_ LONGWIRE_GUARDED_BY(mutex_);  // a request
  uint64_t keepers_ LONGWIRE_GUARDED_BY(mutex_) = 0;               // successors so far
  // Taken while a packet about it is sent, so that the keeper sees changes in their order.
  base::Mutex held_mutex_;
  std::unordered_map<uint64_t, uint32_t> held_ LONGWIRE_GUARDED_BY(held_mutex_);  // how often
  uint64_t charged_ LONGWIRE_GUARDED_BY(held_mutex_) = 0;                         // bytes
  struct HeldShare {
    std::vector<uint64_t> chunks;
    std::vector<wire::Descriptor> files;
  };
  struct StartedFill {
    uint64_t keeper = 0;      // to which it was said
    std::optional<int> code;  // its answer
  };
  std::map<uint64_t, StartedFill> fills_ LONGWIRE_GUARDED_BY(mutex_);  // by request
  std::map<SharedToken, HeldShare> shares_ LONGWIRE_GUARDED_BY(held_mutex_);
  size_t files_ LONGWIRE_GUARDED_BY(held_mutex_) = 0;  // in them
  OnReclaim on_reclaim_;  // set before the thread starts, and so the next two
  OnSwap on_swap_;
  std::function<void()> on_gone_;
  wire::Descriptor stop_;
  std::thread listener_;
};

}  // namespace longwire::worker
