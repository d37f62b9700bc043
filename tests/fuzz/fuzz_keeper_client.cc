// A worker's end of the socket to its keeper, when a keeper answers nonsense: wrong kinds, numbers
// of other requests, chunks without descriptors, requests of its own in between, or its end.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "server/protocol/hello.h"
#include "server/worker/memory/keeper_client.h"
#include "tests/fuzz/chosen_message.h"

using namespace longwire;
using worker::KeeperClient;

namespace {

class Keeper {
 public:
  explicit Keeper(FuzzedDataProvider& input) : input_(input), message_(input, known_) {
    wire::Descriptor theirs;
    if (!wire::LocalPair(&socket_, &theirs)) std::abort();
    fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
    client_ = std::make_unique<KeeperClient>(theirs.Release());
    for (uint64_t i = 0; i < 12; ++i) known_.push_back(i);  // numbers of requests, among others
  }

  void Run() {
    // What it says before it is asked, and to the requests that come.
    size_t count = input_.ConsumeIntegralInRange<size_t>(0, 24);
    size_t first = input_.ConsumeIntegralInRange<size_t>(0, count);
    if (input_.ConsumeBool()) Send(message::Pack(message::Hello{}));
    for (size_t i = 0; i < first; ++i) Say();
    bool greets = input_.ConsumeBool(), listens = input_.ConsumeBool();
    std::string sentence;
    if (greets && first != 0) {
      Send(message::Pack(message::Hello{}));
      client_->Greet(&sentence);
    }
    for (size_t i = first; i < count; ++i) Say();
    shutdown(socket_.get(), SHUT_WR);  // so that nobody waits for more
    if (listens) {
      client_->Listen([this](const keeper::Reclaim&) { ++heard_; },
                      [this](wire::Message) { ++heard_; }, [this] { ++heard_; });
    }
    Ask();
    client_->StopListening();
  }

 private:
  void Send(std::span<const std::byte> packet, size_t descriptors = 0) {
    std::vector<int> files(descriptors, STDIN_FILENO);
    (void)wire::SendMessage(socket_.get(), packet, files);
  }

  void Say() {
    auto packet =
        message_
            .PacketOf<keeper::Grant, keeper::Grant, keeper::Grant, keeper::Refuse, keeper::Shared,
                      keeper::Info, keeper::Charged, keeper::Reclaim, keeper::SwapOut,
                      keeper::SwapReturned, keeper::SwapWatch, message::Hello>();
    keeper::Grant grant;
    size_t files = input_.ConsumeIntegral<uint8_t>() % 3;
    bool is_grant = message::Unpack(packet, &grant) == wire::WireResult::kOk;
    if (is_grant && input_.ConsumeBool()) files = std::min<size_t>(grant.chunks.size(), 60);
    Send(packet, files);
  }

  void Ask() {
    std::string sentence;
    std::vector<KeeperClient::Chunk> chunks;
    keeper::Info info;
    worker::SharedToken token{};
    uint64_t charged = 0;
    for (int i = input_.ConsumeIntegralInRange(1, 6); i > 0; --i) {
      switch (input_.ConsumeIntegralInRange(0, 4)) {
        case 0:
          if (client_->Lease({4096, 4096}, false, &chunks, &sentence) != 0) break;
          if (chunks.size() < 2) std::abort();  // all or none
          break;
        case 1:
          client_->Borrow(token, &chunks, &sentence);
          break;
        case 2:
          client_->Share({1, 2}, &token, &sentence);
          break;
        case 3:
          client_->Info(&info);
          break;
        default:
          if (client_->Charge(4096, 8192, &charged, &sentence) == 0 && charged < 4096) std::abort();
      }
    }
    for (const auto& chunk : chunks) {
      if (!chunk.memory.valid()) std::abort();
    }
    client_->Return({1, 2, 3});
    client_->Uncharge(charged);
  }

  FuzzedDataProvider& input_;
  std::vector<uint64_t> known_;
  fuzz::ChosenMessage message_;
  wire::Descriptor socket_;
  std::atomic<int> heard_{0};
  std::unique_ptr<KeeperClient> client_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  Keeper(input).Run();
  return 0;
}
